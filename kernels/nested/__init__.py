"""The family `nested`: its kernels, and the calls that verify and time them."""
