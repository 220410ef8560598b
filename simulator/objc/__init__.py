"""Compiles Objective-C++ host code for this machine and runs it on the simulated mps device.

`build_extension` (building) makes a shared library out of `.mm` and `.cpp` files; `load_extension` (loading) loads it
into a process that has the simulated device. `runtime`, `foundation`
and `metal` implement Apple's frameworks, `torch_host` torch's mps backend; Metal source runs on `simulator.metal`.
"""
