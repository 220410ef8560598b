"""Calls on mps under torch.compile: generated Metal, calls of aten, a refusal, or a wrong result."""
