"""The family `rrelu`: its kernels, the cases that verify them, the call that is timed."""
