"""Compares antialiased resampling of bytes with Pillow, on which torch's kernels are modelled."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import torch

from .measured import ReferenceComparison, library

_SIZES = (((37, 53), (16, 20)), ((37, 53), (90, 71)), ((64, 48), (63, 11)))
_FILTERS = {
    "BILINEAR": "_upsample_bilinear2d_aa",
    "BICUBIC": "_upsample_bicubic2d_aa",
    "LANCZOS": "_upsample_lanczos2d_aa",
}


def resampling() -> Iterator[ReferenceComparison]:
    """The largest errors, in steps of a byte; none if Pillow is not installed."""
    if importlib.util.find_spec("PIL") is None:
        return
    pillow = library("PIL.Image")
    for before, after in _SIZES:
        image = torch.randint(0, 256, before, generator=torch.Generator().manual_seed(before[0])).to(torch.uint8)
        for name, operator in _FILTERS.items():
            if not hasattr(torch.ops.aten, operator):
                continue
            exact = _resized(pillow, image, after, name)
            ours, cpu = (
                (getattr(torch.ops.aten, operator)(image.to(device)[None, None], after, False).cpu()[0, 0] - exact)
                .abs()
                .max()
                .item()
                for device in ("mps", "cpu")
            )
            what = f"{operator}, {before[0]} by {before[1]} to {after[0]} by {after[1]}"
            yield ReferenceComparison("upsample_antialias_forward", what, "steps of a byte", ours, cpu, "Pillow")


def _resized(pillow: Any, image: torch.Tensor, size: tuple[int, int], name: str) -> torch.Tensor:
    resized = pillow.fromarray(image.numpy()).resize(size[::-1], getattr(pillow.Resampling, name))
    return torch.tensor(bytearray(resized.tobytes()), dtype=torch.uint8).reshape(size).int()
