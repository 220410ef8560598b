"""The kind of a kernel: the body and the launch for an operator, chosen by its name, schema, tags and OpInfo."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from torchgen.model import BaseTy

from ...errors import near
from ..errors import ScaffoldError
from .model import OperatorModel, base_types, is_tensor_list


class KernelKind(str, Enum):
    """Kinds of kernels. Each has a Metal body and a launch that fit it."""

    UNARY = "unary"
    BINARY = "binary"
    TERNARY = "ternary"
    REDUCTION = "reduction"
    SCAN = "scan"
    GATHER = "gather"
    POOLING = "pooling"
    SORT = "sort"
    RANDOM = "random"
    LINALG = "linalg"
    FOREACH = "foreach"

    @property
    def words(self) -> str:
        """Its name in messages."""
        return _WORDS[self]

    @property
    def elementwise(self) -> bool:
        """Whether each output element depends only on the input elements at the same position."""
        return self in (KernelKind.UNARY, KernelKind.BINARY, KernelKind.TERNARY)


_WORDS = {
    KernelKind.UNARY: "elementwise, one tensor",
    KernelKind.BINARY: "elementwise, two tensors",
    KernelKind.TERNARY: "elementwise, three tensors or more",
    KernelKind.REDUCTION: "reduction",
    KernelKind.SCAN: "scan",
    KernelKind.GATHER: "gather / scatter",
    KernelKind.POOLING: "pooling / resampling",
    KernelKind.SORT: "sort-like",
    KernelKind.RANDOM: "random",
    KernelKind.LINALG: "linear algebra",
    KernelKind.FOREACH: "foreach / fused optimizer",
}


@dataclass(frozen=True)
class Choice:
    """A kind, and the reason for it."""

    kind: KernelKind
    because: str


def _named(pattern: str) -> Callable[[OperatorModel], bool]:
    compiled = re.compile(pattern)
    return lambda operator: compiled.search(operator.name) is not None


def _has_generator(operator: OperatorModel) -> bool:
    return any(
        BaseTy.Generator in base_types(argument.type)
        for overload in operator.kernels
        for argument in overload.arguments
    )


def _has_tensor_lists(operator: OperatorModel) -> bool:
    return any(is_tensor_list(argument.type) for overload in operator.kernels for argument in overload.inputs)


def _has_argument(*names: str) -> Callable[[OperatorModel], bool]:
    return lambda operator: any(argument.name in names for overload in operator.kernels for argument in overload.inputs)


def _module(name: str) -> Callable[[OperatorModel], bool]:
    return lambda operator: any(overload.function.python_module == name for overload in operator.overloads)


def _tagged(tag: str) -> Callable[[OperatorModel], bool]:
    return lambda operator: tag in operator.tags


# The first rule that matches decides.
_RULES: tuple[tuple[KernelKind, str, Callable[[OperatorModel], bool]], ...] = (
    (KernelKind.FOREACH, "its name", _named(r"^_foreach_|^_fused_(ada|sgd|lion)|^_amp_foreach")),
    (
        KernelKind.RANDOM,
        "its name",
        _named(r"philox|rrelu|dropout|^(binomial|poisson|multinomial|bernoulli|normal|uniform)"),
    ),
    (KernelKind.RANDOM, "a Generator in its schema", _has_generator),
    (KernelKind.POOLING, "its name", _named(r"pool|upsample|grid_sampler|interpolate|^(im2col|col2im)|_pad\dd|^pad$")),
    (KernelKind.LINALG, "its module, linalg", _module("linalg")),
    (
        KernelKind.LINALG,
        "its name",
        _named(r"linalg|^(geqrf|ormqr|orgqr|lu_|cholesky|svd|qr|triangular)|matrix_exp|(^|_)b?mm(_|$)|conv|rnn|linear"),
    ),
    (KernelKind.SCAN, "its name", _named(r"^_?(log)?cum|^_cummax|^_cummin")),
    (KernelKind.SORT, "its name", _named(r"sort|^topk|^k?thvalue|^mode|median|unique|bucketize|searchsorted")),
    (
        KernelKind.REDUCTION,
        "its name",
        _named(r"loss|pdist|segment_reduce|hash_tensor|^(std|var|min|max|norm)($|_)|softmax"),
    ),
    (
        KernelKind.GATHER,
        "its name",
        _named(r"gather|scatter|^(take|put|index|embedding)|shuffle|narrow|select|jagged|nested"),
    ),
    (KernelKind.GATHER, "an index in its schema", _has_argument("index", "indices")),
    (KernelKind.REDUCTION, "the tag reduction", _tagged("reduction")),
    (KernelKind.REDUCTION, "keepdim or reduction in its schema", _has_argument("keepdim", "reduction")),
    (KernelKind.FOREACH, "lists of tensors in its schema", _has_tensor_lists),
)

_BY_OPINFO = {"ReductionOpInfo": KernelKind.REDUCTION, "ForeachFuncInfo": KernelKind.FOREACH}


def kind_of(operator: OperatorModel, opinfo_class: str | None = None) -> Choice:
    """The kind that fits an operator. `opinfo_class`: the class of torch's OpInfo for it, if known."""
    for kind, because, matches in _RULES:
        if matches(operator):
            return Choice(kind, because)
    if opinfo_class in _BY_OPINFO:
        return Choice(_BY_OPINFO[opinfo_class], f"its OpInfo, a {opinfo_class}")
    # A backward form has the OpInfo of its forward and more tensors, so that elementwise kinds go by their number.
    tensors = max((len(overload.tensors) for overload in operator.kernels), default=1)
    kind = KernelKind.UNARY if tensors <= 1 else KernelKind.BINARY if tensors == 2 else KernelKind.TERNARY
    return Choice(kind, f"{tensors} tensor{'' if tensors == 1 else 's'} in its schema")


def chosen_kind(word: str | None) -> KernelKind | None:
    """The kind of that name. Raises ScaffoldError that lists the kinds."""
    names = [kind.value for kind in KernelKind]
    if word is None:
        return None
    if word not in names:
        raise ScaffoldError(f"'{word}' is not a kind of kernel; there are {', '.join(names)}{near(word, names)}")
    return KernelKind(word)
