"""The family `embedding_renorm`: its kernels, the cases that verify them, the call that is timed."""
