"""Results that an operator leaves open for some inputs: there is nothing to compare then.

`cholesky_ex` does not refuse a matrix that has no factor, but says so in `info`; what it has computed of the factor
until then is nobody's promise, and differs between algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..cases import Case
from .operator_name import operator_name

OPERATORS = frozenset({"cholesky_ex", "linalg_cholesky_ex"})


def is_unspecified_factor(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether an output is a factor that differs only for matrices of which both devices say that they have none.

    Args:
        case: the case.
        position: of the output that differs.
        mine, cpus: the outputs of both devices; `info` stands behind the factor.
    """
    if operator_name(case) not in OPERATORS or len(cpus) != len(mine) or not position + 1 < len(cpus):
        return False
    factor, factor_cpu, info, info_cpu = (each[p] for p in (position, position + 1) for each in (mine, cpus))
    if not all(isinstance(each, Tensor) for each in (factor, factor_cpu, info, info_cpu)):
        return False
    info = info.cpu()
    if factor.shape != factor_cpu.shape or info_cpu.shape != factor_cpu.shape[:-2] or not torch.equal(info, info_cpu):
        return False
    has_one = info == 0
    return torch.allclose(factor.detach().cpu()[has_one], factor_cpu.detach()[has_one], rtol=1e-3, atol=1e-3)
