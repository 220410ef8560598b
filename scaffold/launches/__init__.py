"""Describes how the kernel of an overload is launched and what it binds, and writes the launch in each language."""
