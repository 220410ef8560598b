"""An mps device without a Mac: the simulated device, and Metal source executed on the host.

Importing this package is cheap; the modules import torch when they need it. Whatever comes out of the simulator is
evidence about the CPU's kernels behind the mps dispatch key, never about a Mac, and is to be marked `simulated`.
"""
