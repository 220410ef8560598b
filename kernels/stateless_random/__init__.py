"""The family `stateless_random`: its kernels, and the calls that verify and time them."""
