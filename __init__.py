"""mpsmith: find, track and replace what PyTorch's ``mps`` device lacks, sends to the CPU or gets wrong."""

from ._version import __version__

__all__ = ["__version__"]
