"""The calls that verify and time the family.

Inputs are the bytes of 8-bit floats, because the judge can compare and copy bytes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_aten = torch.ops.aten
_E4M3, _E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
_FORMATS = ((_E4M3, _E4M3), (_E5M2, _E4M3), (_E4M3, _E5M2), (_E5M2, _E5M2))
_WITHOUT_ZERO = ((torch.float8_e4m3fnuz,) * 2, (torch.float8_e5m2fnuz,) * 2)
# Rows, inner dimension, columns: within a tile, exactly one, beyond it.
_SIZES = ((3, 5, 7), (64, 32, 64), (65, 33, 70), (1, 300, 1), (0, 16, 4), (3, 16, 0))


def _operands(
    dtype: torch.dtype, formats: tuple[tuple[torch.dtype, torch.dtype], ...], *, by_row: bool
) -> Iterator[tuple[Any, ...]]:
    """Matrices, scales, and sometimes a bias; the result has `dtype`."""
    for rows, inner, columns in _SIZES:
        for left, right in formats:
            scales = (values((rows, 1), torch.float32), values((1, columns), torch.float32))
            scales = scales if by_row else (torch.tensor(0.75), torch.tensor([-1.5]))
            bias = values((columns,), dtype) if rows % 2 else None
            a, b = values((rows, inner), torch.float32), values((columns, inner), torch.float32)
            yield a.to(left).view(torch.uint8), b.to(right).view(torch.uint8).t(), *scales, bias, left, right, dtype


def _whole(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Sums that are exact in float32, some beyond the result's range, so that every byte must be right."""
    for result in (_E4M3, _E5M2):
        for scale in (0.25, 1.0, 64.0):
            a, b = values((9, 20), torch.float32).round(), values((20, 11), torch.float32).round()
            factor = torch.tensor(scale)
            bytes_of = [x.to(_E4M3).view(torch.uint8) for x in (a, b)]
            yield *bytes_of, factor, factor, None, _E4M3, _E4M3, result


def _product(
    a: torch.Tensor,
    b: torch.Tensor,
    row_scale: torch.Tensor,
    column_scale: torch.Tensor,
    bias: torch.Tensor | None,
    left: torch.dtype,
    right: torch.dtype,
    result: torch.dtype,
) -> torch.Tensor:
    product = torch._scaled_mm(a.view(left), b.view(right), row_scale, column_scale, bias=bias, out_dtype=result)
    return product.view(torch.uint8) if result.itemsize == 1 else product


def _float64_on_cpu(call: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The call; on the CPU in float64 and rounded once, because the CPU rounds row-scaled operands before it adds."""

    def answer(a: torch.Tensor, b: torch.Tensor, *rest: Any) -> torch.Tensor:
        if a.device.type != "cpu":
            return call(a, b, *rest)
        row_scale, column_scale, bias, left, right, result = rest
        product = a.view(left).double() @ b.view(right).double() * row_scale.double() * column_scale.double()
        exact: torch.Tensor = product if bias is None else product + bias.double()
        return exact.to(result)

    return answer


def _divided(
    a: torch.Tensor,
    b: torch.Tensor,
    row_scale: torch.Tensor,
    column_scale: torch.Tensor,
    bias: None,
    left: torch.dtype,
    right: torch.dtype,
    result: torch.dtype,
) -> torch.Tensor:
    operands = (a.view(left), b.view(right), row_scale, column_scale)
    return torch._scaled_mm(*operands, scale_result=4 * row_scale, out_dtype=result).view(torch.uint8)


def _into(a: torch.Tensor, b: torch.Tensor, *rest: Any) -> torch.Tensor:
    row_scale, column_scale, bias, left, right, result = rest
    out = torch.ones((b.shape[1], a.shape[0]), dtype=result, device=a.device).t()
    operands = (a.view(left), b.view(right), row_scale, column_scale)
    return _aten._scaled_mm.out(*operands, bias, None, result, out=out)  # type: ignore[no-any-return]


def _by_recipe(a: torch.Tensor, b: torch.Tensor, *rest: Any) -> torch.Tensor:
    row_scale, column_scale, bias, left, right, result = rest
    recipe = [int(row_scale.dim() == 2)]
    scaling = ([row_scale], recipe, [0], [column_scale], recipe, [0])
    return _aten._scaled_mm_v2(a.view(left), b.view(right), *scaling, bias, result)  # type: ignore[no-any-return]


def _by_recipe_into(a: torch.Tensor, b: torch.Tensor, *rest: Any) -> torch.Tensor:
    row_scale, column_scale, bias, left, right, result = rest
    recipe = [int(row_scale.dim() == 2)]
    scaling = ([row_scale], recipe, [0], [column_scale], recipe, [0])
    out = torch.ones((a.shape[0], b.shape[1]), dtype=result, device=a.device)
    operands = (a.view(left), b.view(right), *scaling, bias, result)
    return _aten._scaled_mm_v2.out(*operands, out=out)  # type: ignore[no-any-return]


_ONE = functools.partial(_operands, formats=_FORMATS, by_row=False)
_ROWS = functools.partial(_operands, formats=_FORMATS, by_row=True)
_UNSIGNED_ZERO = functools.partial(_operands, formats=_WITHOUT_ZERO, by_row=False)


def _calls(
    name: str, rows: tuple[tuple[str, Callable[..., Any], Any, tuple[torch.dtype, ...]], ...]
) -> tuple[KernelCall, ...]:
    return tuple(
        KernelCall(name, (f"aten::{name}",), call, inputs, dtypes, variant=variant)
        for variant, call, inputs, dtypes in rows
        if hasattr(_aten, name)
    )


CASES = _calls(
    "_scaled_mm",
    (
        ("one scale", _product, _ONE, FLOATING),
        ("scales of rows", _float64_on_cpu(_product), _ROWS, FLOATING),
        ("without negative zero", _product, _UNSIGNED_ZERO, FLOATING),
        ("into bytes", _product, _whole, (torch.float32,)),
        ("into divided bytes", _divided, _whole, (torch.float32,)),
        ("into", _float64_on_cpu(_into), _ROWS, FLOATING),
    ),
) + _calls(
    "_scaled_mm_v2",
    (
        ("one scale", _by_recipe, _ONE, FLOATING),
        ("scales of rows", _float64_on_cpu(_by_recipe), _ROWS, FLOATING),
        ("into", _float64_on_cpu(_by_recipe_into), _ROWS, FLOATING),
    ),
)


def _timed_product(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    operands = (a.view(torch.float8_e4m3fn), b.view(torch.float8_e4m3fn).t())
    return torch._scaled_mm(*operands, scale, scale, out_dtype=torch.bfloat16)


def _matrices(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    side = max(16, math.isqrt(elements) // 16 * 16)
    left, right = (torch.randn(side, side).to(torch.float8_e4m3fn).view(torch.uint8) for _ in range(2))
    return left, right, torch.tensor(1.0)


WORKLOAD = Workload("aten::_scaled_mm", _timed_product, _matrices, lambda n: 2.0 * n**1.5)
