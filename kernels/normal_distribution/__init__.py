"""The family `normal_distribution`: its kernels, the cases that verify them, the call that is timed."""
