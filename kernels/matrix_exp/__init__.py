"""The family `matrix_exp`: its kernels, the cases that verify them, the call that is timed."""
