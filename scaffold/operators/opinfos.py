"""Which of torch's OpInfos call an operator. Imports torch and its test database, which takes a few seconds."""

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

    For a backward operator only the class is given, that of the forward operator's OpInfo. Its tests are not used: if
    both operators lack a kernel, they fail because of the forward one.
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
    from ...audit.cases.sources.torch_testing import without_the_compiler

    with without_the_compiler():
        from torch.testing._internal.common_methods_invocations import op_db

    index: dict[str, list[Any]] = {}
    for op in op_db:
        last = op.name.rpartition(".")[2]
        dotted = op.name.replace(".", "_")
        for name in dict.fromkeys([op.aten_name, op.name, last, dotted]):
            index.setdefault(name, []).append(op)
    return index


def named(name: str) -> list[Any]:
    """The OpInfos of that name, one for each variant."""
    return [op for op in _index().get(name, []) if op.name == name]


def supported_dtypes(name: str, device: str = "mps") -> frozenset[str]:
    """The dtypes in which torch's tests call an OpInfo on a device."""
    return frozenset(str(dtype).removeprefix("torch.") for op in named(name) for dtype in op.supported_dtypes(device))


def runs_on(op: Any, dtype: Any, device: str) -> bool:
    """Whether the first sample of an OpInfo runs; any exception means that it does not."""
    try:
        sample = next(iter(op.sample_inputs("cpu", dtype))).transform(lambda leaf: _moved(leaf, device))
        op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return False
    return True


def _moved(leaf: Any, device: str) -> Any:
    import torch

    return leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf
