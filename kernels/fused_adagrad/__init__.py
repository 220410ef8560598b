"""The family `fused_adagrad`: its kernels, the cases that verify them, the call that is timed."""
