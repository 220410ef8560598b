"""The family `eig`: its kernels, and the calls that verify and time them."""
