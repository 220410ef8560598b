"""Indices out of range, for the operators whose CPU kernels look: there the device must refuse them too.

Which do is read from their sources (ATen/native/cpu, ATen/native/*.cpp): the kernels in the table check every index,
or, where an index may be negative, count it from the end. Not in it, because the CPU reads or writes what is not there:
max_pool2d_with_indices_backward and its kin, embedding_bag and its backward, embedding_dense_backward, _ctc_loss
(labels beyond the alphabet), linalg_lu_solve and linalg_ldl_solve (pivots go to LAPACK as they are), _unsafe_index and
all that is called unsafe, segment_reduce (lengths).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

# By operator, without what tells its overloads apart: the argument that holds indices.
CHECKED: dict[str, str] = {
    "gather": "index",
    "scatter": "index",
    "scatter_add": "index",
    "scatter_reduce": "index",
    "index_select": "index",
    "index_add": "index",
    "index_copy": "index",
    "index_fill": "index",
    "index_reduce": "index",
    "index": "indices",
    "index_put": "indices",
    "_index_put_impl": "indices",
    "take": "index",
    "put": "index",
    "embedding": "indices",
    "embedding_renorm": "indices",
    "nll_loss_forward": "target",
    "nll_loss2d_forward": "target",
    "multi_margin_loss": "target",
    "multilabel_margin_loss_forward": "target",
    "max_unpool2d": "indices",
    "max_unpool3d": "indices",
    "bincount": "self",
    "unravel_index": "indices",
}
# Far beyond any size and far below; just below zero, which some operators count from the end.
OUT_OF_RANGE = (100_000, -100_000, -1)


def out_of_range(operator: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The call with one index replaced: a title and the argument that is another.

    Args:
        operator: the overload without its namespace, "index_select.out".
        arguments: the call's arguments by name.
    """
    name = CHECKED.get(operator.split(".")[0].removesuffix("_"))
    if name is None or name not in arguments:
        return
    for number in OUT_OF_RANGE:
        changed = _with_last(arguments[name], number)
        if changed is not None:
            yield f"{name}[-1]={number}", {name: changed}


def _with_last(value: Any, number: int) -> Any:
    """The index tensor, or the list with the first one of its index tensors, with `number` as its last element."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            changed = _with_last(item, number)
            if changed is not None:
                return [*value[:place], changed, *value[place + 1 :]]
        return None
    if not isinstance(value, Tensor) or value.dtype not in (torch.int64, torch.int32) or not value.numel():
        return None
    flat = value.detach().clone().contiguous().flatten()
    flat[-1] = number
    return flat.view(value.shape)
