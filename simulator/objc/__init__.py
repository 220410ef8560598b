"""Objective-C++ that drives Metal, compiled for this machine and run on the simulated mps device.

`build_extension` (building) makes a shared library out of `.mm` and `.cpp` files; `load_extension` (loading) loads it
into a process that has the simulated device. What the files call of Apple's frameworks is in `runtime`, `foundation`
and `metal`; what they call of torch's mps backend in `torch_host`; their Metal source runs on `simulator.metal`.
"""
