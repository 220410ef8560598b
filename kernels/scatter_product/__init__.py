"""The family `scatter_product`: its kernels, the cases that verify them, the call that is timed."""
