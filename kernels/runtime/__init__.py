"""The runtime of all kernels: shaders compiled on first use, launches over any layout, checks, and outputs."""
