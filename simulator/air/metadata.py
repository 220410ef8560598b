"""The metadata of a module: numbered nodes of texts, numbers and references, and the lists that have names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .errors import MalformedKernelError


@dataclass(frozen=True)
class NodeReference:
    """Another node, by its number."""

    node: int


Value = str | int | NodeReference | None
"""An operand of a node; None is what no signature needs: a function, a type, another kind of constant."""


@dataclass(frozen=True)
class Metadata:
    """All nodes by number, and the nodes that a named list holds."""

    nodes: Mapping[int, tuple[Value, ...]]
    lists: Mapping[str, tuple[int, ...]]

    def node(self, value: Value) -> tuple[Value, ...]:
        """The node that `value` refers to. Raises MalformedKernelError where it refers to none."""
        if not isinstance(value, NodeReference) or value.node not in self.nodes:
            raise MalformedKernelError(f"its metadata refers to a node that is not there ({value})")
        return self.nodes[value.node]

    def named(self, name: str) -> Iterator[tuple[Value, ...]]:
        """The nodes of the list `!name`; none where there is no such list."""
        for number in self.lists.get(name, ()):
            yield self.node(NodeReference(number))
