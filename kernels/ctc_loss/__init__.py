"""The family `ctc_loss`: its kernels, and the calls that verify and time them."""
