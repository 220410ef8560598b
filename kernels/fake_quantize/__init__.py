"""The family `fake_quantize`: its kernels, the cases that verify them, the call that is timed."""
