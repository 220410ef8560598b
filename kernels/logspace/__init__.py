"""The family `logspace`: its kernels, and the calls that verify and time them."""
