"""The family `pdist`: its kernels, the cases that verify them, the call that is timed."""
