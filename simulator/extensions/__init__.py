"""What lets programs build and load extensions of Objective-C++ as on a Mac, where the simulated device is loaded."""

from .torch_hook import install

__all__ = ["install"]
