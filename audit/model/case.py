"""Cases, case sources, and the reproducible selection of groups.

A case source lists groups (one operator entry and one dtype) without making inputs. The inputs of a group are made
together from a seed that depends only on the user's seed and the group's name. So a case is identified by its group and
position on every machine, and a worker can make it again from those alone.
"""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Any

import numpy
import torch

from ...errors import MpsmithError
from .description import describe
from .group import GroupKey
from .operator_names import matching
from .selection import DTYPES, Samples, Settings

# The outputs of these operators are uninitialised memory.
UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize",
        "resize_",
        "resize_as",
        "resize_as_",
    }
)


@dataclass
class Case:
    """One call with its inputs on the CPU.

    Attributes:
        call: the operator as a user calls it. It gets `args` and `kwargs` after they were moved to a device.
        args, kwargs: the inputs; tensors, lists of tensors and plain values.
        differentiable: whether the gradients of the outputs are compared.
        process_output: selects the outputs that may be differentiated.
        uninitialised: why the values of the outputs are undefined, or "" if they are defined.
        on_host: positions of arguments that stay on the CPU on every device.
        default_device: the call names no device and has no tensor: it runs with mps as the default device.
        errors_count: if the CPU raises, the device must raise an exception of the same type.
        rounded_to: the call may round intermediate results to this dtype (autocast); None if it may not.
        elementwise: each output element depends only on the input elements at its index; PyTorch then promises the
            strides of the output.
        distribution: the outputs are random numbers, and their distribution is compared with the CPU's.
        cotangent_layout: gives the gradients of the outputs a different memory layout before the backward.
        same_memory: whether outputs must share memory with each other, be an input itself, and be autograd leaves
            where the CPU's are; they must be views of the same inputs in any case.
        written: the call as a program writes it ("torch.where"), if it is one plain call and not from an OpInfo.
        values: the class of special values that was put into the inputs ("nan", "beyond 2^24"), or "plain".
        form: how the operator is called ("in place", "out= transposed", "autocast float16"), or "plain".
        entry: the operator of the case's group ("linalg.eig", "linalg_eig.out"), whatever the call wraps; "" for a case
            that belongs to no group.
        title: how the case differs from others of its group.
        skipped: why the case is not executed, or "".
    """

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    differentiable: bool = False
    process_output: Callable[[Any], Any] = lambda output: output
    uninitialised: str = ""
    on_host: frozenset[int] = frozenset()
    default_device: bool = False
    errors_count: bool = False
    rounded_to: torch.dtype | None = None
    elementwise: bool = False
    distribution: bool = False
    cotangent_layout: Callable[[torch.Tensor], torch.Tensor | None] | None = None
    same_memory: bool = True
    written: str = ""
    values: str = "plain"
    form: str = "plain"
    entry: str = ""
    title: str = ""
    skipped: str = ""


def described(case: Case) -> str:
    """The case's title and its inputs, in one line."""
    inputs = f"{describe(case.args)}, {describe(case.kwargs)}" if case.kwargs else describe(case.args)
    return f"{case.title}: {inputs}" if case.title else inputs


class QuickShare(Enum):
    """Which of a source's groups the level `quick` takes: all, one dtype for each operator, or none."""

    ALL = "all"
    ONE_DTYPE = "one dtype"
    NONE = "none"


class CaseSource(ABC):
    """Makes cases of one kind for the operators that it lists.

    Attributes:
        name: the source's name, part of every case's identity.
        slowest: operators that should be started first, because one of their groups takes very long.
        opt_in: whether an audit leaves the source out unless the user names it, or asks for large cases.
        repeats: whether its groups have many cases at the same levels; the default audit leaves most of those out.
        quick: which of its groups the level `quick` takes.
    """

    name: str
    slowest: frozenset[str] = frozenset()
    opt_in: bool = False
    repeats: bool = False
    quick: QuickShare = QuickShare.ALL

    @abstractmethod
    def groups(self) -> Iterable[GroupKey]:
        """Every group that this source can make, with the mode "fallback". Must be cheap: it makes no input."""

    def operators(self) -> frozenset[str]:
        """The operators of its groups; it may name more."""
        return frozenset(key.operator for key in self.groups())

    def groups_of(self, operators: Collection[str]) -> Iterable[GroupKey]:
        """The groups of some operators, without making all others."""
        return (key for key in self.groups() if key.operator in operators)

    @abstractmethod
    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The cases of one group; called with all random generators seeded."""

    def has_cases_in(self, dtype: str, samples: Samples) -> bool:
        """Whether groups of a dtype have cases at a sample level; groups that have none are not planned."""
        return True


def make_cases(source: CaseSource, key: GroupKey, samples: Samples, seed: int) -> dict[int, Case]:
    """The cases of the group by position, the same ones on every machine for the same `samples` and `seed`.

    The level `quick` makes only the first few and keeps the first, the last and evenly spread ones between them:
    samplers put the plain cases first, and the odd and the large ones last.
    """
    seed_generators(seed, key.label)
    made = source.cases(key, samples)
    cases = list(made if samples is not Samples.QUICK else islice(made, QUICK_LOOKS_AT))
    kept = range(len(cases)) if samples is not Samples.QUICK else _quick_positions(len(cases))
    return {position: replace(cases[position], entry=key.operator) for position in kept}


def _quick_positions(made: int) -> list[int]:
    """The positions that the level `quick` keeps of `made` cases."""
    if made <= QUICK_CASES:
        return list(range(made))
    return [round(i * (made - 1) / (QUICK_CASES - 1)) for i in range(QUICK_CASES)]


# How many cases of each group the level `quick` makes, and keeps.
QUICK_LOOKS_AT = 8
QUICK_CASES = 3


def is_wanted(source: CaseSource, settings: Settings) -> bool:
    """Whether an audit runs a source: one that the user named, or all but the opt-in ones if none is named."""
    if source.opt_in:
        return settings.large or source.name in settings.sources
    return not settings.sources or source.name in settings.sources


def in_order_of_execution(source: CaseSource, groups: Iterable[GroupKey]) -> list[GroupKey]:
    """A source's groups, the slowest first, then in pseudorandom order, so that the remaining time can be estimated."""

    def rank(key: GroupKey) -> tuple[bool, bytes]:
        return key.operator not in source.slowest, hashlib.blake2b(key.label.encode()).digest()

    return sorted(groups, key=rank)


def seed_generators(seed: int, label: str) -> None:
    """Seed torch's CPU generator, numpy and random from the user's seed and a name."""
    digest = hashlib.blake2b(f"{seed}:{label}".encode(), digest_size=8).digest()
    value = int.from_bytes(digest, "little") >> 1
    torch.default_generator.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value & 0xFFFFFFFF)


def require_dtypes(names: Sequence[str]) -> None:
    """Raise MpsmithError for a dtype that mps does not have."""
    unknown = [name for name in names if name not in DTYPES]
    if unknown:
        raise MpsmithError(f"unknown dtype {unknown[0]!r} (mps has {', '.join(DTYPES)})")


def select(
    sources: Iterable[CaseSource], ops: Sequence[str], dtypes: Sequence[str], samples: Samples
) -> list[GroupKey]:
    """The groups of sources that match any of the patterns `ops` and have one of `dtypes`; empty means all.

    Groups without cases at the sample level are left out. `operator_names.matching` describes the patterns. Raises
    MpsmithError if a pattern or dtype matches nothing.
    """
    require_dtypes(dtypes)
    listed = list(sources)
    names = frozenset[str]().union(*(source.operators() for source in listed)) if ops else frozenset[str]()
    wanted = {name for pattern in ops for name in matching(pattern, names)} if names else set[str]()
    made = ((source, source.groups_of(wanted) if ops else source.groups()) for source in listed)
    groups = [key for source, keys in made for key in keys if source.has_cases_in(key.dtype, samples)]
    if not (names if ops else groups):
        raise MpsmithError("nothing to audit: the chosen sources have no case here (choose others with --sources)")
    chosen = [key for key in groups if not dtypes or key.dtype in dtypes]
    if not chosen:
        of_dtypes = f" has {', '.join(dtypes)}" if dtypes else ""
        raise MpsmithError(f"nothing to audit: no case of {', '.join(ops) or 'any operator'}{of_dtypes}")
    return chosen
