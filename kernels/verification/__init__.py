"""Shows that kernels are right: inputs of every layout, float64 references, gradients, and evidence for the registry."""
