"""The family `fake_quantize_channels`: its kernels, the cases that verify them, the call that is timed."""
