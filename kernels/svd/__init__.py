"""The family `svd`: its kernels, and the calls that verify and time them."""
