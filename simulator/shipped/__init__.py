"""Runs the shipped kernels of a release in place of the CPU's kernels."""
