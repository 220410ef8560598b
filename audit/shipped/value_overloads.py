"""Which native overloads compute no values, so that it does not matter for a case which kernel answered them."""

from __future__ import annotations

from functools import cache

import torch

# They give memory out, or another description of memory, or hand over bytes as they are.
NEUTRAL = frozenset(
    f"aten::{name}"
    for name in (
        "_copy_from",
        "_copy_from_and_resize",
        "_local_scalar_dense",
        "_to_cpu",
        "empty.memory_format",
        "empty_permuted",
        "empty_strided",
        "is_set_to",
        "record_stream",
        "resize_",
        "set_",
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "set_.source_Tensor",
    )
)


@cache
def computes_values(overload: str) -> bool:
    """Whether an overload ("aten::add.Tensor") computes values: no view, no factory of empty memory, no copy does."""
    return overload not in NEUTRAL and not _is_view(overload)


def _is_view(overload: str) -> bool:
    """Whether its schema says that it gives the memory of an argument again, and changes none."""
    namespace, _, rest = overload.partition("::")
    name, _, variant = rest.partition(".")
    try:
        schema = getattr(getattr(getattr(torch.ops, namespace), name), variant or "default")._schema
    except AttributeError:
        return False
    aliased = [each.alias_info for each in schema.returns if each.alias_info is not None]
    written = any(each.alias_info is not None and each.alias_info.is_write for each in schema.arguments)
    return bool(aliased) and not written
