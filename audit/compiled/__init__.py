"""What torch.compile makes of a call on mps: generated Metal, calls of aten, a refusal, or a wrong result."""
