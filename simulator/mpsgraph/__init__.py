"""A stand-in for MPSGraph and the matrix kernels beside it, which are Apple's and closed.

It implements the classes and selectors that PyTorch's host code uses. A graph is executed with torch's CPU operators.
"""
