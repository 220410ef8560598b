"""Functions over nested inputs and outputs: lists, tuples, named tuples and dictionaries.

`torch.utils._pytree` does the same for any registered type, but slower, and each case is walked a dozen times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

CONTAINERS = (tuple, list, dict)


def leaves(tree: Any) -> Iterator[Any]:
    """Every value that is not a container, from left to right; torch's named returns count as tuples."""
    if not isinstance(tree, CONTAINERS):
        return iter((tree,))
    values: list[Any] = []
    _collect(tree, values)
    return iter(values)


def _collect(container: Any, values: list[Any]) -> None:
    # One call for each container, none for a leaf: inputs are visited dozens of times, and most values are leaves.
    for branch in container.values() if isinstance(container, dict) else container:
        if isinstance(branch, CONTAINERS):
            _collect(branch, values)
        else:
            values.append(branch)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of the same shape, with `change` applied to each leaf."""
    if isinstance(tree, tuple):
        branches = [map_leaves(change, branch) for branch in tree]
        return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    if isinstance(tree, list):
        return [map_leaves(change, branch) for branch in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(change, branch) for key, branch in tree.items()}
    return change(tree)
