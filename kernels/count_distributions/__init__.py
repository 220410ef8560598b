"""The family `count_distributions`: its kernels, the cases that verify them, the call that is timed."""
