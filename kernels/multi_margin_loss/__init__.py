"""The family `multi_margin_loss`: its kernels, and the calls that verify and time them."""
