"""Reads PyTorch wheels for macOS on any machine: what the yaml declares and what the binary registers."""
