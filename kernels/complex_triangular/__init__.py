"""The family `complex_triangular`: its kernels, and the calls that verify and time them."""
