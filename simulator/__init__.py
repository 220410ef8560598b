"""An mps device without a Mac: the simulated device, and Metal source executed on the host.

Importing this package is cheap; the modules import torch when they need it. Results of the simulator are evidence about
the CPU's kernels behind the mps dispatch key, never about a Mac, and must be marked `simulated`.
"""
