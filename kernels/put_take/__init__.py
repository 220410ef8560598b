"""The family `put_take`: its kernels, the cases that verify them, the call that is timed."""
