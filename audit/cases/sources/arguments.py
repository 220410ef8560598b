"""Every argument of every overload at its other values: flags, words, dims, numbers, optional tensors, indices.

The recorded calls of an overload are the base. One argument at a time is changed, then two at once, then the whole
series is called in a row on the same tensors: what a device keeps from one call to the next, by shapes or by the text
of a number, shows there. What the CPU takes is compared; of what it refuses, the device must refuse some as well.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ....registry.files import full_name
from ...judging.randomness import draws
from ...model.case import Case
from ...model.nested import leaves
from ..calls.binding import Binding
from ..calls.invocation import overload_of, runs_a_kernel, written_arguments
from .argument_values import END_NAMES, FACTOR_NAMES, other_values
from .calls_in_a_row import ConsecutiveCalls, Step, in_dtype, scaled, unchanged, with_others
from .case_tensors import accepts, call_on_cpu, tensors_of
from .derived import BaseGroup, Factor, distinct
from .indices import out_of_range

BASES = 2
LARGEST_BASE = 20_000
MOST_OF_AN_ARGUMENT = 9
MOST_COMBINED = 5
MOST_IN_A_ROW = 14

# The first of these that an overload takes is the dtype in which each value of each argument is a case.
MAIN_DTYPES = ("float32", "int64", "complex64", "bool")
# Dtypes in which the values are called in a row alone, as many of them as the overload takes.
ROW_DTYPES = ("float16", "int64", "bfloat16", "complex64", "uint8", "bool")
MOST_ROW_DTYPES = 2

# Overloads whose result is undefined, or whose CPU kernel reads memory that its arguments describe without a check.
UNCHECKED_OPERATORS = re.compile(
    r"unsafe_(?!split|chunk)|^_?(resize|set_|empty|new_empty|as_strided|_reshape_alias|nested)|_nested_"
    r"|ctc_loss_backward|^_pack|^_pad_packed|_cslt|fbgemm|_thnn|sparse"
    r"|^_(cummax|cummin)_helper|^_fft_c2r|moving_avg_obs|^_weight_norm_interface|^range"
    r"|^linalg_lstsq\.out"
)
# Overloads of which the same is true but for some of their flags: with these alone every place is where it was.
FLAGS_ALONE = re.compile(r"embedding_bag|embedding_dense_backward|batch_norm_backward")
HARMLESS_FLAGS = frozenset({"scale_grad_by_freq", "update"})
# Single arguments of which the same is true: without statistics there is nothing to normalise by but the batch itself;
# a factor that does not go with the output's size says two things, of which kernels take either; windows that are not
# those of the gradient are read beyond its end.
TRUSTED: tuple[tuple[str, frozenset[str]], ...] = (
    (r"^_native_batch_norm_legit\.no_stats", frozenset({"training"})),
    (r"^_?upsample_", frozenset({"scales", "scales_d", "scales_h", "scales_w", "scale_factors"})),
    (r"^unfold_backward", frozenset({"dim", "size", "step"})),
)
# Operators whose CPU kernel divides integers by a number of elements, or a threshold, that may be zero.
DIVIDES_INTEGERS = re.compile(r"avg_pool|smooth_l1_loss")
# Refusals that say nothing about the arguments: the CPU has no kernel for the dtype, or no kernel is reached at all.
UNRELATED_REFUSALS = re.compile(
    r"not implemented for|not supported|unsupported|INTERNAL ASSERT|Expected a value of type|expected at most"
    r"|is missing value for argument|Overloaded torch operator|cannot be converted|memory|Could not run",
    re.IGNORECASE,
)

# Numbers that three, or six, digits do not tell apart, and by what the tensors are multiplied, so that the results
# differ by more than the tolerance.
NEAR: tuple[tuple[tuple[float, ...], float], ...] = (
    ((0.5, 0.50048828125, 0.500030517578125), 1.0),
    ((1.5, 1.50048828125, 1.500030517578125), 64.0),
    ((1e-7, 3e-7, 2e-8), 2.0**20),
    ((1048576.0, 1048592.0), 1.0),
)
NEAR_INTEGERS: tuple[tuple[tuple[float, ...], float], ...] = (((1_048_576, 1_048_577), 1.0),)


@dataclass(frozen=True)
class ArgumentChange:
    """Other values for some arguments of a call.

    Attributes:
        title: for people: "keepdim=True".
        others: the values by the arguments' names.
        refused: whether the CPU refuses them.
    """

    title: str
    others: Mapping[str, Any]
    refused: bool = False

    @property
    def plain(self) -> bool:
        """Whether no tensor is among the values, so that they can be given on any device."""
        return not any(isinstance(leaf, Tensor) for leaf in leaves(dict(self.others)))


def _applies(group: BaseGroup) -> bool:
    """Each overload in its main dtype, and in a few others only for the series of calls."""
    return group.key.dtype in varied_dtypes(group)


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """All variations of two different calls of the overload; beside its main dtype only the series of one."""
    is_main = group.key.dtype == varied_dtypes(group)[0]
    for case in filter(accepts, cases if is_main else cases[:1]):
        changes = ArgumentChanges(full_name(group.key.operator), case)
        yield from changes.all() if is_main else changes.in_a_row()


# Recorded calls of each overload with other values for their arguments.
ARGUMENT_FACTOR = Factor(
    "arguments", _variations, _applies, choose=lambda group, cases: distinct(filter(is_small, cases), BASES)
)


def varied_dtypes(group: BaseGroup) -> tuple[str, ...]:
    """The dtypes in which arguments of the group's overload are varied, the main one first; empty if none is varied."""
    operator = group.key.operator
    return chosen_dtypes(operator, group.dtypes) if is_varied(operator) else ()


@cache
def is_varied(operator: str) -> bool:
    """Whether an overload has its own kernel and arguments to vary, and gives the same result at every call."""
    name = full_name(operator)
    overload = overload_of(name)
    if UNCHECKED_OPERATORS.search(operator) or draws(overload) or not runs_a_kernel(name):
        return False
    return any(str(argument.type) not in ("Tensor", "List[Tensor]") for argument in overload._schema.arguments)


def chosen_dtypes(operator: str, accepted: Iterable[str]) -> tuple[str, ...]:
    """The main dtype of those that an overload accepts, followed by a few others."""
    accepted = [dtype for dtype in accepted if not divides_by_zero(operator, dtype)]
    main = next((dtype for dtype in MAIN_DTYPES if dtype in accepted), accepted[0])
    others = [dtype for dtype in ROW_DTYPES if dtype in accepted and dtype != main]
    return main, *others[:MOST_ROW_DTYPES]


def divides_by_zero(operator: str, dtype: str) -> bool:
    """Whether the CPU kernel of an overload may divide integers by zero, which ends the process."""
    return "int" in dtype and DIVIDES_INTEGERS.search(operator) is not None


class ArgumentChanges:
    """The changes to the arguments of one call.

    Args:
        name: the overload, "aten::topk".
        case: the call; the CPU takes it.
    """

    def __init__(self, name: str, case: Case) -> None:
        self._name = name
        self._operator = name.partition("::")[2] if name.startswith("aten::") else name
        self._case = case
        self._binding = Binding(name, case.args, case.kwargs)
        self._copies = bool(written_arguments(name))

    def recorded(self, argument: str) -> Any:
        """The value of an argument in the call."""
        return self._binding.given.get(argument)

    def all(self) -> Iterator[Case]:
        """Each value alone, some of them together, all in a row, and numbers near each other."""
        single = list(self.single())
        accepted = [variation for variation in single if not variation.refused]
        yield from map(self._changed, [*single, *self._combined(accepted), *self._special()])
        yield from self.in_a_row(accepted)
        yield from self._near()

    def single(self) -> Iterator[ArgumentChange]:
        """One argument at another value; of what the CPU refuses, one value of each argument."""
        for argument in self._binding.schema:
            if not may_vary(self._operator, argument.name):
                continue
            values = other_values(argument, self._binding.given)
            tried = [self._tried({argument.name: value}) for value in values]
            yield from islice((v for v in tried if v is not None and not v.refused), MOST_OF_AN_ARGUMENT)
            yield from islice((v for v in tried if v is not None and v.refused), 1)

    def in_a_row(self, accepted: list[ArgumentChange] | None = None) -> Iterator[Case]:
        """One case that calls the operator with every accepted plain value, in another dtype, and as recorded."""
        if accepted is None:
            accepted = [variation for variation in self.single() if not variation.refused]
        plain = [variation for variation in accepted if variation.plain]
        every = -(-len(plain) // MOST_IN_A_ROW) or 1
        chosen = plain[::every]
        if not chosen:
            return
        steps: list[Step] = [unchanged]
        for variation in chosen:
            steps.append(with_others(self._name, variation.others))
        steps += [*self._other_dtype(), unchanged]
        title = "in a row: " + ", ".join(variation.title for variation in chosen)
        call = ConsecutiveCalls(self._case.call, steps, copies=self._copies)
        yield replace(self._case, call=call, form="in a row", title=title)

    def _other_dtype(self) -> Iterator[Step]:
        before = next((leaf.dtype for leaf in tensors_of(self._case) if leaf.dtype is torch.float32), None)
        if before is None:
            return
        step = in_dtype(before, torch.bfloat16)
        args, kwargs = step(self._case.args, self._case.kwargs)
        if accepts(replace(self._case, args=args, kwargs=kwargs)):
            yield step

    def _combined(self, accepted: list[ArgumentChange]) -> Iterator[ArgumentChange]:
        """All flags changed at once, then values of two arguments at once."""
        flags = {n: v for a in accepted for n, v in a.others.items() if isinstance(v, bool)}
        pairs = [(a, b) for a in accepted for b in accepted if min(a.others) < min(b.others)]
        wanted = [flags] if len(flags) > 1 else []
        wanted += [{**a.others, **b.others} for a, b in random.sample(pairs, min(MOST_COMBINED, len(pairs)))]
        for others in wanted:
            variation = self._tried(others)
            if variation is not None and not variation.refused:
                yield variation

    def _special(self) -> Iterator[ArgumentChange]:
        """Indices out of range; NaN in `self` with beta=0, which must not be read."""
        for title, others in out_of_range(self._operator, self._binding.given):
            variation = self._tried(others)
            if variation is not None:
                yield replace(variation, title=title)
        if "beta" in self._binding.given and isinstance(self._binding.given.get("self"), Tensor):
            poisoned = with_nan(self._binding.given["self"])
            if poisoned is not None:
                variation = self._tried({"beta": 0, "self": poisoned})
                if variation is not None:
                    yield replace(variation, title="beta=0, NaN in self")

    def _near(self) -> Iterator[Case]:
        """Numbers that few digits do not tell apart, in calls in a row."""
        floats = any(leaf.is_floating_point() or leaf.is_complex() for leaf in tensors_of(self._case))
        for argument in self._binding.schema:
            kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
            if kind not in ("number", "float") or argument.name in FACTOR_NAMES | END_NAMES:
                continue
            steps: list[Step] = []
            for numbers, factor in NEAR if floats else NEAR_INTEGERS:
                tried = [self._tried({argument.name: number}) for number in numbers]
                if all(variation is not None and not variation.refused for variation in tried):
                    steps += [scaled(with_others(self._name, {argument.name: n}), factor) for n in numbers]
            if steps:
                call = ConsecutiveCalls(self._case.call, steps, copies=self._copies)
                title = f"numbers near each other: {argument.name}"
                yield replace(self._case, call=call, form="in a row", title=title)

    def _tried(self, others: Mapping[str, Any]) -> ArgumentChange | None:
        """The change, and whether the CPU refuses it; None if the refusal has another reason."""
        title = ", ".join(f"{name}={shown(value)}" for name, value in others.items())
        try:
            call_on_cpu(self._changed(ArgumentChange(title, others)))
        except Exception as error:
            return None if UNRELATED_REFUSALS.search(str(error)) else ArgumentChange(title, others, refused=True)
        return ArgumentChange(title, others)

    def _changed(self, variation: ArgumentChange) -> Case:
        args, kwargs = self._binding.with_others(variation.others)
        return replace(self._case, args=args, kwargs=kwargs, title=variation.title, errors_count=variation.refused)


def may_vary(operator: str, argument: str) -> bool:
    """Whether an argument of an overload may take every value that the CPU accepts."""
    if FLAGS_ALONE.search(operator):
        return argument in HARMLESS_FLAGS
    return not any(argument in names and re.search(pattern, operator) for pattern, names in TRUSTED)


def with_nan(tensor: Tensor) -> Tensor | None:
    """The tensor with NaN and an infinity in it; None if its dtype has none."""
    if not tensor.is_floating_point() or not tensor.numel() or tensor.layout is not torch.strided:
        return None
    flat = tensor.detach().clone().contiguous().flatten()
    flat[0] = math.nan
    flat[-1] = math.inf if flat.numel() > 1 else math.nan
    return flat.view(tensor.shape)


def is_small(case: Case) -> bool:
    """Whether a call is small enough to be made many times, and its result is defined."""
    return not case.uninitialised and max((tensor.numel() for tensor in tensors_of(case)), default=0) <= LARGEST_BASE


def shown(value: Any) -> str:
    """The value of an argument in a title; of a tensor its shape."""
    return f"{list(value.shape)}" if isinstance(value, Tensor) else repr(value)
