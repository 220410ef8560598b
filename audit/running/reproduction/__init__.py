"""One case again: replayed, made smaller, and printed as a program for a Mac."""
