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
    """The OpInfos of an operator by its name without namespace; those of the forward operator for a backward one."""
    index = _index()
    for name in _spellings(operator):
        if name in index:
            found = index[name]
            return OpInfos(tuple(dict.fromkeys(op.name for op in found)), type(found[0]).__name__)
    return OpInfos((), None)


def _spellings(operator: str) -> list[str]:
    """The operator's own name, then the names of the public operators that it may belong to."""
    bare = operator.strip("_")
    names = [operator, bare]
    for ending in ("_backward", "_forward", "_with_noise", "_jvp"):
        if ending in bare:
            stem = bare.replace(ending, "")
            names += [stem, stem.removesuffix("_with_noise")]
    return list(dict.fromkeys(names))


@cache
def _index() -> Mapping[str, list[Any]]:
    from torch.testing._internal.common_methods_invocations import op_db

    index: dict[str, list[Any]] = {}
    for op in op_db:
        last = op.name.rpartition(".")[2]
        dotted = op.name.replace(".", "_")
        backward = [op.aten_backward_name] if op.aten_backward_name else []
        for name in dict.fromkeys([op.aten_name, op.name, last, dotted, *backward]):
            index.setdefault(name, []).append(op)
    return index
