"""The metadata of a module: numbered nodes of strings, numbers and references, and named lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import MalformedKernelError


@dataclass(frozen=True)
class NodeReference:
    """Another node, by its number."""

    node: int


Value = str | int | NodeReference | None
"""An operand of a node; None for functions, types and other constants, which signatures do not need."""


@dataclass(frozen=True)
class Metadata:
    """All nodes by number, and the nodes of named lists."""

    nodes: Mapping[int, tuple[Value, ...]]
    lists: Mapping[str, tuple[int, ...]]

    def node(self, value: Value) -> tuple[Value, ...]:
        """The node that `value` refers to. Raises MalformedKernelError if there is none."""
        if not isinstance(value, NodeReference) or value.node not in self.nodes:
            raise MalformedKernelError(f"its metadata refers to a missing node ({value})")
        return self.nodes[value.node]

    def named(self, name: str) -> Iterator[tuple[Value, ...]]:
        """The nodes of the list `!name`; none if there is no such list."""
        for number in self.lists.get(name, ()):
            yield self.node(NodeReference(number))
