"""Traces what a program does on mps: its fallbacks, copies and synchronisations, by line and by module."""
