"""The family `fake_quantize`: its kernels, and the calls that verify and time them."""
