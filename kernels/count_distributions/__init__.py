"""The family `count_distributions`: its kernels, and the calls that verify and time them."""
