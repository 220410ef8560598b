"""The family `rearrange`: its kernels, and the calls that verify and time them."""
