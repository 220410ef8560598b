"""The windows of a pooling kernel: their number of dimensions, and the result of each."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Windows:
    """The windows of a pooling kernel. The shader has `extents` of the last `spatial` dimensions.

    Attributes:
        spatial: how many dimensions a window has.
        takes_best: whether the result is the largest value and its index; else it is the mean.
    """

    spatial: int
    takes_best: bool

    @property
    def place_in_plane(self) -> str:
        """The index of element (p0, p1, ...) in its plane, in Metal."""
        place = "p0"
        for dim in range(1, self.spatial):
            place = f"({place}) * extents[{dim}] + p{dim}" if dim > 1 else f"{place} * extents[{dim}] + p{dim}"
        return place

    @property
    def elements_of_plane(self) -> str:
        """The number of elements of a plane, in Metal."""
        product = " * ".join(f"extents[{dim}]" for dim in range(self.spatial))
        return f"({product})" if self.spatial > 1 else product


def windows_of(operator: str) -> Windows | None:
    """The windows of an operator by its name, `adaptive_max_pool3d`; None for a gradient, which has no windows."""
    dimensions = re.search(r"pool(\d)d", operator)
    if dimensions is None or "backward" in operator:
        return None
    return Windows(int(dimensions[1]), "max" in operator)
