"""The family `hash_tensor`: its kernels, and the calls that verify and time them."""
