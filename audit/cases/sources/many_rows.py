"""Parts of operators over very many rows: backwards and others that rely on the checks of their callers.

Such a call fits only in its own sizes, but its batch may be repeated: in every tensor whose first dimension it is,
and in every list of sizes. That is done only if no other dimension has the batch's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves, map_leaves
from .case_tensors import tensors_of, tensors_on_cpu
from .sizes import LONGEST

# Above the 2,048 ones that half precision counts.
ROWS = 2_049
MOST_ELEMENTS = 600_000


def with_many_rows(cases: Iterable[Case], elements: int = LONGEST) -> Iterator[Case]:
    """The first of some calls of one operator whose batch can be repeated, over very many rows."""
    for case in cases:
        repeated = repeated_batch(case, elements)
        if repeated is not None:
            yield repeated
            return


def repeated_batch(case: Case, elements: int = LONGEST) -> Case | None:
    """The call with its batch repeated; None if it has none, or gives other results than those of a batch.

    Its largest tensor gets so many elements, and `ROWS` rows, or more.
    """
    tensors = tensors_of(case)
    if any(tensor.layout is not torch.strided or not tensor.numel() for tensor in tensors):
        return None
    main = max(tensors, key=lambda tensor: (tensor.dim(), tensor.numel()), default=None)
    if main is None or main.dim() < 2 or not _is_batch(case, main.shape[0], main.dim()):
        return None
    batch = main.shape[0]
    rows = max(ROWS, elements // (main.numel() // batch) + 1)
    times = -(-rows // batch)
    largest = max(tensor.numel() for tensor in tensors if tensor.dim() and tensor.shape[0] == batch)
    if largest * times > MOST_ELEMENTS:
        return None
    made = replace(_repeated(case, batch, times, main.dim()), title=f"{batch * times:,} rows")
    return made if _fits(case, made, batch, times) else None


def _is_batch(case: Case, size: int, dimensions: int) -> bool:
    """Whether only first dimensions, and no numbers, have this size."""
    inner = any(size in tensor.shape[1:] for tensor in tensors_of(case))
    numbers = [leaf for argument in _without_sizes(case, size, dimensions) for leaf in leaves(argument)]
    named = any(type(number) is int and number == size for number in numbers)
    return size > 1 and not inner and not named and _lists_are_known(case)


def _lists_are_known(case: Case) -> bool:
    """Whether the length of each vector is a dimension of a larger tensor; if not, it may depend on the batch.

    For n rows there are n (n - 1) / 2 pairs, and `_pdist_backward` on the CPU reads beyond a vector that is too short.
    """
    sizes = {size for tensor in tensors_of(case) if tensor.dim() > 1 for size in tensor.shape}
    return all(tensor.dim() != 1 or tensor.numel() == 1 or len(tensor) in sizes for tensor in tensors_of(case))


def _without_sizes(case: Case, size: int, dimensions: int) -> Iterator[Any]:
    for argument in (*case.args, *case.kwargs.values()):
        yield argument[1:] if _begins_with(argument, size, dimensions) else argument


def _begins_with(argument: Any, size: int, dimensions: int) -> bool:
    """Whether an argument is a list of sizes that begins with the batch's."""
    numbers = isinstance(argument, (list, tuple)) and all(type(number) is int for number in argument)
    return numbers and len(argument) == dimensions and argument[0] == size


def _repeated(case: Case, batch: int, times: int, dimensions: int) -> Case:
    def larger(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not leaf.dim() or leaf.shape[0] != batch:
            return leaf
        return leaf.detach().repeat(times, *(1 for _ in leaf.shape[1:]))

    def changed(argument: Any) -> Any:
        if _begins_with(argument, batch, dimensions):
            return [batch * times, *argument[1:]]
        return map_leaves(larger, argument)

    args = tuple(map(changed, case.args))
    return replace(case, args=args, kwargs={name: changed(value) for name, value in case.kwargs.items()})


def _fits(case: Case, repeated: Case, batch: int, times: int) -> bool:
    """Whether the shapes of the results are those of the first call, with the batch dimension `times` larger."""
    before, after = _shapes_on_cpu(case), _shapes_on_cpu(repeated)
    if before is None or after is None:
        return False
    return after == [[size * times, *rest] if size == batch else [size, *rest] for size, *rest in before]


def _shapes_on_cpu(case: Case) -> Sequence[list[int]] | None:
    """The shapes of a call's results, or None if the CPU refuses it or a result has no dimension."""
    tensors = tensors_on_cpu(case)
    shapes = [list(tensor.shape) for tensor in tensors or ()]
    return None if tensors is None or not all(shapes) else shapes
