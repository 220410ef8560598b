"""Operators that draw random numbers: whether a seed repeats them, and how they are distributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...judging.compare import same_bits
from ...judging.randomness import draws_in_any_overload, generators_as_before
from ...model.case import Case
from ...model.nested import leaves
from .derived import BaseGroup, Factor, in_each_case
from .forms import Call, copied, detached

# So many numbers are drawn for a distribution, in at most so many calls.
DRAWS = 8192
MOST_CALLS = 1024
# With fewer numbers two seeds may well give the same ones.
NUMBERS_FOR_SEEDS = 64


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """One case under seeds, and one of as many draws as it takes to know the distribution."""
    operator = group.opinfo.op
    plain = replace(case, differentiable=False, args=detached(case.args), kwargs=detached(case.kwargs))
    yield replace(plain, call=under_seeds(operator), title="under seeds")
    name = group.key.operator.rpartition(".")[2]
    yield replace(plain, call=many_draws(operator, name), title="distribution", distribution=True)


RANDOM_FACTOR = Factor(
    "random", in_each_case(_variations), applies=lambda group: draws_numbers(group.key.operator, group.opinfo.aten_name)
)


# OpInfos whose random operator has another name.
ATEN_NAMES = {"nn.functional.dropout2d": "feature_dropout", "nn.functional.dropout3d": "feature_dropout"}


def draws_numbers(operator: str, aten_name: str = "") -> bool:
    """Whether the operator of an OpInfo draws from the generator that a seed controls, as its schemas are tagged."""
    names = {aten_name, operator.removeprefix("nn.functional."), ATEN_NAMES.get(operator, "")}
    return any(map(draws_in_any_overload, names))


def under_seeds(operator: Call) -> Call:
    """Says in words whether a seed repeats the numbers, and whether another seed and another call give others.

    The default generators are left as they were: the words are not a random result.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        def draw() -> list[Tensor]:
            return draws_for_seeds(operator, args, kwargs)

        with generators_as_before():
            torch.manual_seed(1)
            first, following = draw(), draw()
            torch.manual_seed(1)
            again = draw()
            torch.manual_seed(2)
            other = draw()
        return (
            f"a seed gives {compared(first, again)} numbers again",
            f"another seed gives {compared(first, other)} numbers",
            f"further calls give {compared(first, following)} numbers",
        )

    call.__name__ = "under seeds"
    return call


def many_draws(operator: Call, name: str = "") -> Call:
    """The outputs of many calls with the same inputs, one vector for each output.

    It has the operator's name, or `name`: the judge asks by it whether the operator draws by its nature.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return drawn(operator, args, kwargs, DRAWS, MOST_CALLS)

    call.__name__ = name or getattr(operator, "__name__", "many draws")
    return call


def drawn(operator: Call, args: Any, kwargs: Any, wanted: int, most_calls: int) -> list[Tensor]:
    """The results of enough calls to draw `wanted` numbers, one vector for each output of the operator."""

    draws = draws_of(operator, args, kwargs, wanted, most_calls)
    return [torch.cat(outputs) for outputs in zip(*draws, strict=True)]


def draws_of(operator: Call, args: Any, kwargs: Any, wanted: int, most_calls: int) -> list[list[Tensor]]:
    """The results of each of several calls, with tensors as vectors."""

    def draw() -> list[Tensor]:
        result = operator(*copied(args), **copied(kwargs))
        return [leaf.flatten() for leaf in leaves(result) if isinstance(leaf, Tensor)]

    draws = [draw()]
    size = max((t.numel() for t in draws[0]), default=0)
    calls = min(most_calls, -(-wanted // size)) if size else 1
    return draws + [draw() for _ in range(calls - 1)]


def draws_for_seeds(operator: Call, args: Any, kwargs: Any) -> list[Tensor]:
    """Enough draws to tell two seeds apart, on the host: no other operator of the device puts them together."""
    draws = draws_of(operator, args, kwargs, NUMBERS_FOR_SEEDS, NUMBERS_FOR_SEEDS)
    return [torch.cat([t.cpu() for t in outputs]) for outputs in zip(*draws, strict=True)]


def compared(left: list[Tensor], right: list[Tensor]) -> str:
    """In a word, whether two lots of draws are the same numbers."""
    pairs = zip(left, right, strict=True)
    return "the same" if all(same_bits(a, b) for a, b in pairs) else "other"
