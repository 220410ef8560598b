"""The family `fused_adagrad`: its kernels, and the calls that verify and time them."""
