"""A stand-in for MPSGraph and the matrix kernels of MetalPerformanceShaders, Apple's closed libraries.

It implements the classes and selectors that PyTorch's host code uses. A graph is executed with torch's CPU operators.
"""
