"""The family `scatter_product`: its kernels, and the calls that verify and time them."""
