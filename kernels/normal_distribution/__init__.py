"""The family `normal_distribution`: its kernels, and the calls that verify and time them."""
