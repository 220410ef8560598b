"""The largest and the smallest element of a tensor, with a given output; any NaN gives NaN."""

from __future__ import annotations

import math

import torch

from ..runtime.layout import layout_of
from ..runtime.operands import not_implemented
from ..runtime.outputs import overlaps, require_castable, resize_output
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_GROUP = 256  # the size that the Metal kernels are written for
_MOST_GROUPS = 1024
_VECTOR_BYTES = 16


def max_unary_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`max.unary_out` for every real dtype of mps."""
    return _extremum("max", self, out)


def min_unary_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`min.unary_out` for every real dtype of mps."""
    return _extremum("min", self, out)


def _extremum(name: str, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    require_castable(x.dtype, out.dtype)
    if x.dtype.is_complex:
        raise not_implemented(f"{name}_all", x.dtype)
    resize_output(out, ())
    if x.numel() == 0:
        return out.fill_(_identity(name, x.dtype))
    if out.dtype != x.dtype or overlaps(out, x):  # other threads may still read the element that `out` is
        return out.copy_(_extremum(name, x, torch.empty((), dtype=x.dtype, device=x.device)))
    groups = min(_MOST_GROUPS, -(-x.numel() * x.element_size() // (_GROUP * _VECTOR_BYTES)))
    if groups == 1:
        _reduce(name, x, out, 1)
        return out
    partial = torch.empty(groups, dtype=x.dtype, device=x.device)
    _reduce(name, x, partial, groups)
    _reduce(name, partial, out, 1)
    return out


def _identity(name: str, dtype: torch.dtype) -> float:
    """The result for an empty tensor, as on the CPU, which accepts one with out=."""
    if dtype == torch.bool:
        return float(name == "min")
    if dtype.is_floating_point:
        return -math.inf if name == "max" else math.inf
    limits = torch.iinfo(dtype)
    return limits.min if name == "max" else limits.max


def _reduce(name: str, x: torch.Tensor, partial: torch.Tensor, groups: int) -> None:
    """Reduce `x` to one value for each group; every group has a share of the elements."""
    suffix = METAL_TYPES[x.dtype]
    layout = layout_of([x])
    threads = groups * _GROUP
    if layout.is_dense and x.storage_offset() * x.element_size() % _VECTOR_BYTES == 0:
        _shader.kernel(f"{name}_dense_{suffix}", x.device)(partial, x, x.numel(), threads=threads, group_size=_GROUP)
    else:
        _shader.kernel(f"{name}_strided_{suffix}", x.device)(
            partial, x, layout.packed, threads=threads, group_size=_GROUP
        )


KERNELS = (("aten::max.unary_out", max_unary_out), ("aten::min.unary_out", min_unary_out))
