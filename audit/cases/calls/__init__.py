"""Calls of every overload by its schema: recorded as data, made by hand where no search finds one."""
