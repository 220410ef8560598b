"""The family `logit`: its kernels, and the calls that verify and time them."""
