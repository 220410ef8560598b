"""The family `qr_reflectors`: its kernels, the cases that verify them, the call that is timed."""
