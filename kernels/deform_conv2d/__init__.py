"""The family `deform_conv2d`: its kernels, and the calls that verify and time them."""
