"""The host's first step before a kernel accumulates or scatters into its result: `zero_` or `fill_(0)`."""

from __future__ import annotations

from torch import Tensor

from ..plan import BlitFill, Declined


def zeroed(tensor: Tensor) -> BlitFill:
    """The step that sets a dense tensor to zero, as the blit encoder does.

    Raises:
        Declined: the tensor has gaps, so the host uses a kernel or MPSGraph.
    """
    if not is_dense(tensor):
        raise Declined("a strided result is set to zero first")
    return BlitFill(tensor)


def is_dense(tensor: Tensor) -> bool:
    """Whether a tensor's elements cover its memory in some order, without gaps or overlap."""
    expected = 1
    for stride, size in sorted((s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True
