"""Results that an operator leaves unspecified for some inputs. They are not compared.

`cholesky_ex` reports in `info` that a matrix has no factor; the part that it computed is unspecified. For a matrix that
is not finite, `ldl_factor_ex` depends on LAPACK's search for pivots. `mode` sorts rows, and the CPU's sort does not
order NaN, so the counts of a row with NaN are arbitrary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .operator_name import operator_name

OPERATORS = frozenset({"cholesky_ex", "linalg_cholesky_ex"})
FACTORS_OF_FINITE = frozenset({"ldl_factor_ex", "linalg_ldl_factor_ex", "ldl_factor", "linalg_ldl_factor"})


def is_unspecified_factor(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether an output is a factor that differs only for matrices that both devices report to have none.

    Args:
        case: the case.
        position: the position of the output that differs.
        mine, cpus: the outputs of both devices; `info` follows the factor.
    """
    if operator_name(case) not in OPERATORS or len(cpus) != len(mine) or not position + 1 < len(cpus):
        return False
    factor, factor_cpu, info, info_cpu = (outputs[p] for p in (position, position + 1) for outputs in (mine, cpus))
    if not all(isinstance(tensor, Tensor) for tensor in (factor, factor_cpu, info, info_cpu)):
        return False
    info = info.cpu()
    if factor.shape != factor_cpu.shape or info_cpu.shape != factor_cpu.shape[:-2] or not torch.equal(info, info_cpu):
        return False
    has_one = info == 0
    return torch.allclose(factor.detach().cpu()[has_one], factor_cpu.detach()[has_one], rtol=1e-3, atol=1e-3)


def is_unspecified_mode(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether outputs are modes or their indices that differ only in rows with NaN, and are modes there, too.

    Args:
        case: the case; its first argument has the rows.
        position: the position of the output that differs: values, or the indices that follow them.
        mine, cpus: the outputs of both devices.
    """
    elements: Any = case.args[0] if case.args else case.kwargs.get("self", case.kwargs.get("input"))
    if operator_name(case) != "mode" or not isinstance(elements, Tensor) or not elements.is_floating_point():
        return False
    first = position - position % 2
    if first + 1 >= len(cpus) or not all(isinstance(outputs[first + 1], Tensor) for outputs in (mine, cpus)):
        return False
    dim = case.kwargs.get("dim", case.args[1] if len(case.args) > 1 else -1)
    rows = elements.detach().cpu().movedim(dim, -1) if elements.dim() else elements.reshape(1)
    values, indices, other = (tensor.detach().cpu() for tensor in (mine[first], mine[first + 1], cpus[position]))
    if values.numel() * rows.shape[-1] != rows.numel() or indices.shape != values.shape or other.shape != values.shape:
        return False
    rows, values, indices = rows.reshape(-1, rows.shape[-1]), values.flatten(), indices.flatten()
    differs = (values if position == first else indices) != other.flatten()
    if bool((differs & ~rows.isnan().any(-1) & ~values.isnan()).any()) or bool((indices >= rows.shape[-1]).any()):
        return False
    counts = (rows[:, :, None] == rows[:, None, :]).sum(-1).clamp(min=1)
    named = counts.gather(-1, indices[:, None])[:, 0]
    value_there = rows.gather(-1, indices[:, None])[:, 0]
    matches = (value_there == values) | (value_there.isnan() & values.isnan())
    return bool((matches & (named == counts.amax(-1)))[differs].all())


def is_factor_of_infinite(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether factors, pivots and `info` of LDL differ only for matrices with NaN or infinities.

    LAPACK's result depends on where its search for a pivot finds them. The factor of such a matrix must not be finite
    on any device.

    Args:
        case: the case; its first argument holds the matrices. Only their lower triangles count.
        position: the position of the output that differs.
        mine, cpus: the outputs of both devices: factor, pivots and info, in this order.
    """
    matrices: Any = case.args[0] if case.args else case.kwargs.get("self", case.kwargs.get("A"))
    first = position - position % 3
    if operator_name(case) not in FACTORS_OF_FINITE or not isinstance(matrices, Tensor) or first >= len(cpus):
        return False
    factor, mine_here, cpus_here = (tensor.detach().cpu() for tensor in (mine[first], mine[position], cpus[position]))
    if factor.shape != matrices.shape or mine_here.shape != cpus_here.shape:
        return False
    count = matrices.shape[:-2].numel()
    finite = matrices.detach().cpu().tril().isfinite().reshape(count, -1).all(-1)
    if bool(factor.isfinite().reshape(count, -1).all(-1)[~finite].any()):
        return False
    left, right = (tensor.reshape(count, -1)[finite] for tensor in (mine_here, cpus_here))
    return (
        bool(torch.allclose(left, right, rtol=1e-4, atol=1e-4))
        if left.is_floating_point() or left.is_complex()
        else torch.equal(left, right)
    )
