"""The family `hash_tensor`: its kernels, the cases that verify them, the call that is timed."""
