"""Probes whether `torch.mps` itself works: each public name of it and of related modules."""
