"""Calls of overloads by their schemas: recorded as data, or written by hand if no search finds one."""
