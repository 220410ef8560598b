"""Shows that kernels are right: inputs in every layout, float64 references, gradients, evidence for the registry."""
