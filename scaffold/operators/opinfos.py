"""Which of torch's OpInfos call an operator. Imports torch and its test database, a few seconds once a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class OpInfos:
    """The OpInfos that call an operator: their names, and the class of the first, such as `UnaryUfuncInfo`."""

    names: tuple[str, ...]
    kind: str | None


def opinfos_for(operator: str) -> OpInfos:
    """The OpInfos of an operator by its name without namespace.

    The OpInfo of a forward operator tells the kind of its backward one, but does not test it by itself: where both lack
    a kernel it would fail for the other's sake.
    """
    index = _index()
    for name in (operator, operator.strip("_")):
        if name in index:
            opinfos = index[name]
            return OpInfos(tuple(dict.fromkeys(op.name for op in opinfos)), type(opinfos[0]).__name__)
    forward = _forward_name(operator)
    return OpInfos((), type(index[forward][0]).__name__ if forward in index else None)


def _forward_name(operator: str) -> str:
    """The public operator that a backward or inner one belongs to."""
    bare = operator.strip("_")
    for ending in ("_backward", "_forward", "_jvp", "_with_noise"):
        bare = bare.replace(ending, "")
    return bare


@cache
def _index() -> Mapping[str, list[Any]]:
    from torch.testing._internal.common_methods_invocations import op_db

    index: dict[str, list[Any]] = {}
    for op in op_db:
        last = op.name.rpartition(".")[2]
        dotted = op.name.replace(".", "_")
        for name in dict.fromkeys([op.aten_name, op.name, last, dotted]):
            index.setdefault(name, []).append(op)
    return index
