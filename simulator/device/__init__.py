"""The simulated mps device: the real dispatch key on the CPU build of torch, with the coverage of any release."""
