"""The family `complex_triangular`: its kernels, the cases that verify them, the call that is timed."""
