"""What all kernels share: shaders compiled on first use, launches over any layout, outputs and contracts on entry."""
