"""The family `variance`: its kernels, and the calls that verify and time them."""
