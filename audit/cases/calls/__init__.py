"""Calls of every overload by its schema: remembered as data, made by hand where no search finds one."""
