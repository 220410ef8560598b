"""Variance and standard deviation with a given output; torch has kernels for the functional forms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from ..runtime.layout import reduced_orders
from ..runtime.operands import FLOATING, require_device, require_supported, wrap_dim
from ..runtime.outputs import overlaps, refuse_internal_overlap, require_castable, resize_output
from ..runtime.rows import group_of_many_rows, launch_rows, row_group
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_HALVES = frozenset({torch.float16, torch.bfloat16})
_SHARE = 4096  # elements that one group takes, unless the rows are many
_MOST_GROUPS = 1024  # in all, where a row has several
_WORDS_OF_A_SHARE = {False: 5, True: 8}  # of 4 bytes: `moments` of the Metal source, for real and for complex numbers


def _correction_out(name: str, root: bool) -> Callable[..., torch.Tensor]:
    def correction_out(
        self: torch.Tensor,
        dim: Sequence[int] | None = None,
        *,
        correction: Any = None,
        keepdim: bool = False,
        out: torch.Tensor,
    ) -> torch.Tensor:
        """Computed in float32 and cast to the dtype of `out`. Of complex numbers, both parts are summed."""
        _check_dtypes(self, out, name)
        require_device(self, {"out": out}, name)
        dims = None if dim is None else tuple(dim)
        reduced, shape, results, length = _reduction(self.shape, dims, keepdim)
        degrees = 1.0 if correction is None else float(correction)
        _check_number_of_results(self, out, results, name)
        resize_output(out, shape)
        refuse_internal_overlap(out)
        if (out.numel() and length <= degrees) or not self.numel():
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel).",
                stacklevel=2,
            )
        if not self.numel():
            return out.fill_(torch.nan)
        direct = out.dtype == torch.float32 and out.is_contiguous() and not overlaps(out, self)
        result = out if direct else torch.empty(shape, dtype=torch.float32, device=self.device)
        _launch(result, self, reduced, [degrees, float(root)])
        return out if direct else out.copy_(result)

    return correction_out


def _launch(result: torch.Tensor, x: torch.Tensor, reduced: tuple[int, ...], correction: list[float]) -> None:
    orders = reduced_orders(x, reduced)
    rows, columns = orders[0][0], orders[1][0]
    groups = min(-(-_MOST_GROUPS // rows), -(-columns // _SHARE))
    # One group a row writes no shares: any buffer will do then that is aligned to their 8 bytes.
    partial = result
    if groups > 1 or result.storage_offset() % 2:
        words = rows * groups * _WORDS_OF_A_SHARE[x.is_complex()]
        partial = torch.empty(words, dtype=torch.float32, device=x.device)
    # One SIMD group: combining the moments of two needs divisions, while the other groups wait.
    group = group_of_many_rows(rows, columns, simd_groups=1)
    kernel = _shader.kernel(f"variance_rows_{METAL_TYPES[x.dtype]}", x.device)
    kernel(result, partial, x, *orders, correction, threads=(group * groups, rows), group_size=(group, 1))
    if groups > 1:
        combine = _shader.kernel(f"variance_of_shares_{'float2' if x.is_complex() else 'float'}", x.device)
        arguments = (result, partial, groups, correction)
        launch_rows(combine, rows, row_group(groups), *arguments, int32=True)


@lru_cache(maxsize=4096)
def _reduction(
    shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """The dimensions to reduce, all if none is named; the output's shape; how many results, each of how many elements.

    Cached because a program has few shapes. Raises what the CPU raises.
    """
    named: set[int] = set()
    for d in dim or ():
        wrapped = wrap_dim(d, max(len(shape), 1))
        if wrapped in named:
            raise RuntimeError(f"dim {wrapped} appears multiple times in the list of dims")
        named.add(wrapped)
    reduced = tuple(d for d in named or range(len(shape)) if d < len(shape))
    kept = tuple(1 if d in reduced else size for d, size in enumerate(shape) if keepdim or d not in reduced)
    return reduced, kept, math.prod(kept), math.prod(shape[d] for d in reduced)


def _check_number_of_results(x: torch.Tensor, out: torch.Tensor, results: int, name: str) -> None:
    """Raise what the CPU raises for one result of half precision in a wider dtype, and for several in a complex one."""
    if results == 1:
        if x.numel() and x.dtype in _HALVES and out.dtype not in _HALVES:
            raise RuntimeError(f"std_var_all: Unsupported dtype {str(x.dtype).removeprefix('torch.')}")
    elif out.is_complex() and not x.is_complex():
        raise NotImplementedError(f"{name} of {x.dtype} into complex outputs is not implemented on mps")


def _check_dtypes(x: torch.Tensor, out: torch.Tensor, name: str) -> None:
    if x.dtype not in FLOATING and not x.is_complex():
        raise RuntimeError("std and var only support floating point and complex dtypes")
    require_castable(torch.float32 if x.is_complex() else x.dtype, out.dtype)
    require_supported(x, name, METAL_TYPES)


KERNELS = (
    ("aten::std.correction_out", _correction_out("std", root=True)),
    ("aten::var.correction_out", _correction_out("var", root=False)),
)
