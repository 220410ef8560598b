"""Target `upstream`: a patch against PyTorch's tree, and what of that tree it changes."""
