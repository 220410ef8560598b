"""The family `matrix_exp`: its kernels, and the calls that verify and time them."""
