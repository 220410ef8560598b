"""The family `stateless_random`: its kernels, the cases that verify them, the call that is timed."""
