"""The family `rrelu`: its kernels, and the calls that verify and time them."""
