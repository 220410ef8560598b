"""The family `heaviside`: its kernels, and the calls that verify and time them."""
