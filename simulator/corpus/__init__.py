"""Metal of public projects: which files, at which version, and what they need to compile; none of their text."""
