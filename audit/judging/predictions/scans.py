"""Models of releases' long scans with indices: a data race between one chunk and the next."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

Scan = Callable[[Tensor, int], tuple[Tensor, Tensor]]

_SIMD_GROUP = 32
_MOST_THREADS = 1024


def racing(scan: Scan) -> Model:
    """The model of a scan along the last dimension whose first SIMD group enters the next chunk before the others.

    It overwrites the carried value that the other SIMD groups still read with its own result for the next chunk. So for
    each chunk but the first, only the first SIMD group's elements include the carried value.
    """

    def model(_ulp: Ulp, input: Tensor, dim: int) -> tuple[Tensor, Tensor] | None:
        if input.dim() == 0 or dim % input.dim() != input.dim() - 1:
            return None
        reads = 4 if input.element_size() <= 4 else 2
        size = _chunk(input.shape[-1], reads)
        parts, carried = [], None
        for start in range(0, input.shape[-1], size):
            chunk = input[..., start : start + size]
            values, indices = scan(chunk, -1)
            indices = indices + start
            ahead = _SIMD_GROUP * reads
            if carried is not None:
                first = torch.cat([carried[0], chunk[..., :ahead]], -1)
                joined, places = scan(first, -1)
                positions = torch.cat(
                    [carried[1], torch.arange(start, start + ahead).expand_as(chunk[..., :ahead])], -1
                )
                values[..., :ahead] = joined[..., 1:]
                indices[..., :ahead] = positions.gather(-1, places)[..., 1:]
            parts.append((values, indices))
            carried = values[..., -1:], indices[..., -1:]
        return torch.cat([part[0] for part in parts], -1), torch.cat([part[1] for part in parts], -1)

    return model


def _chunk(length: int, reads: int) -> int:
    """How many elements a threadgroup scans at a time."""
    per_simd_group = reads * _SIMD_GROUP
    threads = _MOST_THREADS
    if length <= reads * 1024:
        threads = -(-length // per_simd_group) * _SIMD_GROUP
    elif length <= reads * 2048:
        threads = -(-(length // 2) // per_simd_group) * _SIMD_GROUP
    return min(threads, _MOST_THREADS) * reads


SCANS = (
    Prediction("scan-of-long-rows-races", {"aten::cummax": racing(torch.cummax), "aten::cummin": racing(torch.cummin)}),
)
