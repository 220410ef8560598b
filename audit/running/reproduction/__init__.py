"""One case again: replayed, made smaller, and written as a program for a Mac."""
