"""The family `orthogonal_polynomials`: its kernels, and the calls that verify and time them."""
