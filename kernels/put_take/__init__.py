"""The family `put_take`: its kernels, and the calls that verify and time them."""
