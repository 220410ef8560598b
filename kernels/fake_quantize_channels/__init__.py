"""The family `fake_quantize_channels`: its kernels, and the calls that verify and time them."""
