"""Operators whose CPU kernels check indices, so that an index out of range is a case: the device must refuse it, too.

On mps some write to the place that the index points to (pytorch #189968), which may end the process or make macOS
ignore its work. On a real device the groups of these cases run last, each in a separate process. Imports no torch.
"""

from __future__ import annotations

from .group import GroupKey

# By operator, without what tells its overloads apart: the argument that holds indices. Read from their sources
# (ATen/native/cpu, ATen/native/*.cpp): the kernels check every index, or, where an index may be negative, count it from
# the end. Not in it, because the CPU reads or writes what is not there: max_pool2d_with_indices_backward and its kin,
# embedding_bag and its backward, embedding_dense_backward, _ctc_loss (labels beyond the alphabet), linalg_lu_solve and
# linalg_ldl_solve (pivots go to LAPACK as they are), _unsafe_index and all that is called unsafe, segment_reduce
# (lengths).
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
# The sources that replace an index by one out of range, or pass an OpInfo's error inputs or what users reported.
SOURCES = ("arguments", "errors", "compiled situations", "known wrong")


def argument_with_indices(operator: str) -> str | None:
    """The argument that holds indices of an overload such as `index_select.out`; None if its CPU kernel checks none."""
    return CHECKED.get(operator.removeprefix("aten::").split(".")[0].removesuffix("_"))


def may_write_out_of_range(key: GroupKey) -> bool:
    """Whether cases of this group give an operator indices out of range."""
    return key.source in SOURCES and argument_with_indices(key.operator) is not None
