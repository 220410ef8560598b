"""The family `orthogonal_polynomials`: its kernels, the cases that verify them, the call that is timed."""
