"""Does `torch.mps` itself work? Each public name of it and of its neighbours, probed one by one."""
