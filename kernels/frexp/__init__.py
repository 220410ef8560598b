"""The family `frexp`: its kernels, and the calls that verify and time them."""
