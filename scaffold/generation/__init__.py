"""From an operator's name to a plan of files, and from there into folder and registry."""
