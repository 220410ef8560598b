"""Faults injected into the code generator of torch.compile, which ordinary cases have to find."""
