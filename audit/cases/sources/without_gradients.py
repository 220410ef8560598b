"""Samples that PyTorch's samplers make only without gradients: embedding's max_norm, masks of attention.

An OpInfo's sampler gets `requires_grad` and may make other samples for it: what has no derivative, or what its test
of gradients would fail on. `opinfo` asks for samples that require gradients wherever an operator has some.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from types import CodeType
from typing import Any

import torch

from ...model.case import Case, described, seed_generators
from .derived import BaseGroup, Factor
from .opinfo import OpInfoSource

DTYPES = ("float32", "float16", "bfloat16", "complex64")
TORCH_TESTING = "torch.testing._internal."
# What may stand between the load of a variable and the jump that it decides, in one release of Python or another.
BETWEEN = ("CACHE", "COPY", "EXTENDED_ARG", "NOP", "TO_BOOL", "UNARY_NOT")
# Samplers call helpers, which call helpers.
DEEPEST = 4


def _applies(group: BaseGroup) -> bool:
    """Dense OpInfos with a derivative whose sampler asks whether gradients are wanted."""
    op = group.opinfo
    return (
        group.key.dtype in DTYPES
        and bool(op.supports_autograd)
        and getattr(torch, group.key.dtype) in op.supported_backward_dtypes("cpu")
        and asks_for_gradients(op.sample_inputs_func)
    )


def _variations(group: BaseGroup, _: Sequence[Case]) -> Iterator[Case]:
    """The samples without gradients; of each description, as many are left out as there are samples with gradients."""
    assert isinstance(group.base, OpInfoSource)
    seed_generators(0, replace(group.key, source=WITHOUT_GRADIENT_FACTOR.name).label)
    remaining = Counter(described(case) for case in group.cases(group.samples))
    for case in group.base.samples(group.key, group.samples, differentiable=False):
        text = described(case)
        if remaining[text]:
            remaining[text] -= 1
        else:
            yield case


# What the sampler of an OpInfo makes without gradients beyond what it makes with them.
WITHOUT_GRADIENT_FACTOR = Factor(
    "samples without gradients", _variations, _applies, choose=lambda group, cases: [], repeats=True
)


@cache
def asks_for_gradients(sampler: Callable[..., Any]) -> bool:
    """Whether a sampler, or what it calls of PyTorch's testing code, decides anything by `requires_grad`."""
    return _asks(sampler, DEEPEST, set())


def _asks(function: Any, depth: int, seen: set[CodeType]) -> bool:
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or code in seen or not str(getattr(function, "__module__", "")).startswith(TORCH_TESTING):
        return False
    seen.add(code)
    codes = [code, *(constant for constant in code.co_consts if isinstance(constant, CodeType))]
    if any(map(_decides, codes)):
        return True
    cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    named = [function.__globals__.get(name) for code_object in codes for name in code_object.co_names]
    return depth > 0 and any(_asks(called, depth - 1, seen) for called in (*cells, *named) if callable(called))


def _decides(code: CodeType) -> bool:
    """Whether a jump depends on the variable `requires_grad`."""
    if "requires_grad" not in (*code.co_varnames, *code.co_names, *code.co_cellvars, *code.co_freevars):
        return False  # looking at every instruction of every sampler takes seconds
    steps = [step for step in dis.get_instructions(code) if step.opname not in BETWEEN]
    return any(
        first.argval == "requires_grad" and first.opname.startswith("LOAD_") and "JUMP" in second.opname
        for first, second in pairwise(steps)
    )


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
