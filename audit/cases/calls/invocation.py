"""Calling overloads by name with recorded arguments, and reading their schemas."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .contexts import CONTEXTS
from .cpu_kernels import KERNELS
from .recipes import decode


def overload_of(name: str) -> Any:
    """The OpOverload for "aten::mode.values". Raises AttributeError when this torch has none."""
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator)
    return getattr(packet, overload or "default")


def runs_a_kernel(name: str) -> bool:
    """Whether the overload has its own kernel on the CPU or on mps, and is not composed of others."""
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, device) for device in ("CPU", "MPS"))


def written_arguments(name: str) -> list[str]:
    """The names of the arguments that an overload writes into, as its schema says."""
    return [
        argument.name
        for argument in overload_of(name)._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


# Overloads that answer without a dispatch, or whose binding is written by hand: the profiler does not see their calls.
UNSEEN = frozenset(
    f"aten::{name}"
    for name in ("is_leaf", "output_nr", "_version", "is_complex", "get_device", "size.int", "_shape_as_tensor")
)


def announced(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The call inside a profiler record of this name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._profiler._RecordFunctionFast(name):
            return run(*args, **kwargs)

    return call


class SchemaCall:
    """Calls an overload; the result also holds the arguments that its schema says are written."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._overload = overload_of(name)
        self._run: Callable[..., Any]
        situation = CONTEXTS.get(name)
        self._run = self._overload if situation is None else partial(situation, self._overload)
        if name in UNSEEN:
            self._run = announced(name, self._run)
        self._written = [
            (argument.name, position)
            for position, argument in enumerate(self._overload._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]

    @property
    def needs_torch_alone(self) -> bool:
        """Whether the overload can be called by name: without a situation, a kernel of ours or another package."""
        namespace, _, name = self.__name__.partition("::")
        return namespace == "aten" and self.__name__ not in CONTEXTS and name not in KERNELS

    @property
    def writes(self) -> bool:
        """Whether the schema says that an argument is written: in place, or out=."""
        return bool(self._written)

    @property
    def is_pointwise(self) -> bool:
        """Whether torch tags it as pointwise: each element of the result depends only on those at the same index."""
        return torch.Tag.pointwise in self._overload.tags and not self.writes and "backward" not in self.__name__

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments of a call that the schema says are written."""
        return [
            kwargs[name] if name in kwargs else args[i] for name, i in self._written if name in kwargs or i < len(args)
        ]

    @property
    def takes_device(self) -> bool:
        """Whether the overload has an argument `device`, as factories have."""
        return any(argument.name == "device" and argument.kwarg_only for argument in self._overload._schema.arguments)

    def positions_of(self, names: frozenset[str]) -> frozenset[int]:
        """The positions of the arguments with these names, or "operator/name" for those of one operator."""
        operator = self.__name__.removeprefix("aten::").split(".")[0]
        return frozenset(
            position
            for position, argument in enumerate(self._overload._schema.arguments)
            if argument.name in names or f"{operator}/{argument.name}" in names
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The overload's result, and the written arguments."""
        result = self._run(*args, **kwargs)
        return result, self.written(args, kwargs)


def fingerprint(name: str) -> str:
    """A short hash of the overload's schema: a recorded call is replayed only if the schema has not changed."""
    return hashlib.blake2b(str(overload_of(name)._schema).encode(), digest_size=4).hexdigest()


def arguments_of(call: dict[str, Any], dtype: str | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a recorded call, with its own replaceable dtype or another in its place."""
    swap = {} if dtype is None else {call["dtype"]: dtype}
    return tuple(decode(call["args"], swap)), {name: decode(value, swap) for name, value in call["kwargs"].items()}


def out_arguments(name: str) -> list[str]:
    """The names of the out= arguments of an overload."""
    return [
        argument.name
        for argument in overload_of(name)._schema.arguments
        if argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write
    ]
