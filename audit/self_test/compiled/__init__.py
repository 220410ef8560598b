"""Faults put into the code generator of torch.compile, each of which ordinary cases have to find."""
