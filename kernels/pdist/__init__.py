"""The family `pdist`: its kernels, and the calls that verify and time them."""
