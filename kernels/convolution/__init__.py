"""The family `convolution`: its kernels, and the calls that verify and time them."""
