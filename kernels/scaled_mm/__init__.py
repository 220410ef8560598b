"""The family `scaled_mm`: its kernels, the cases that verify them, the call that is timed."""
