"""Compiles and runs the Metal kernels of public projects; none of their source is in this repository."""
