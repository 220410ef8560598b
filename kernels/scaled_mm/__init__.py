"""The family `scaled_mm`: its kernels, and the calls that verify and time them."""
