"""Defects of the Metal that torch.compile generates for mps: each a small program that shows it, on a Mac or here."""
