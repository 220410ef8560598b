"""The family `embedding_renorm`: its kernels, and the calls that verify and time them."""
