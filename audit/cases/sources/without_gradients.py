"""Samples that PyTorch's samplers make only where no gradient is wanted: embedding's max_norm, masks of attention.

An OpInfo's sampler gets `requires_grad` and may make other samples for it: what has no derivative, or what its test
of gradients could not stand. `opinfo` asks for samples that want gradients wherever an operator has some.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from types import CodeType
from typing import Any

import torch

from ...model.case import Case, QuickShare, described, seed_generators
from ...model.group import GroupKey
from ...model.selection import Samples
from .derived import BasedSource
from .opinfo import OpInfoSource

DTYPES = ("float32", "float16", "bfloat16", "complex64")
TORCH_TESTING = "torch.testing._internal."
# What may stand between the load of a variable and the jump that it decides, in one release of Python or another.
BETWEEN = ("CACHE", "COPY", "EXTENDED_ARG", "NOP", "TO_BOOL", "UNARY_NOT")
# Samplers call helpers, which call helpers.
DEEPEST = 4


class WithoutGradientSource(BasedSource[OpInfoSource]):
    """What the sampler of an OpInfo makes without gradients beyond what it makes with them."""

    name = "samples without gradients"
    quick = QuickShare.ONE_DTYPE
    repeats = True

    def taken(self, keys: Iterable[GroupKey]) -> Iterator[GroupKey]:
        """Those of OpInfos with a derivative whose sampler asks whether gradients are wanted."""
        asking: dict[tuple[str, str], bool] = {}
        for key in keys:
            if key.dtype not in DTYPES or "/" in key.variant:
                continue
            op = self._base.opinfo(key)
            name = (key.operator, key.variant)
            if name not in asking:
                asking[name] = bool(op.supports_autograd) and asks_for_gradients(op.sample_inputs_func)
            if asking[name] and getattr(torch, key.dtype) in op.supported_backward_dtypes("cpu"):
                yield key

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The samples without gradients, but for as many of each description as there are with gradients."""
        base = self.base_key(key)
        seed_generators(0, key.label)
        known = Counter(described(case) for case in self._base.cases(base, samples))
        for case in self._base.samples(base, samples, differentiable=False):
            text = described(case)
            if known[text]:
                known[text] -= 1
            else:
                yield case


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
    named = [function.__globals__.get(name) for each in codes for name in each.co_names]
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
