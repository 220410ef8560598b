"""PyTorch's own host code for mps, compiled for this machine and registered on the simulated device.

`operations` says which files of a tree can be compiled here and which kernels of its native_functions.yaml they define;
`registrations` has torchgen write what PyTorch's build would generate of them; `building` makes a library of both.
"""
