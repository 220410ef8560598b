"""Which native overloads compute values. For the others, it does not matter which kernel ran."""

from __future__ import annotations

from functools import cache

import torch

# They allocate memory, describe it differently, or copy bytes unchanged.
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
    """Whether an overload ("aten::add.Tensor") computes values. Views, factories of empty memory and copies do not."""
    return overload not in NEUTRAL and not _is_view(overload)


def _is_view(overload: str) -> bool:
    """Whether the result, by the schema, shares an argument's memory and no argument is written."""
    namespace, _, rest = overload.partition("::")
    name, _, variant = rest.partition(".")
    try:
        schema = getattr(getattr(getattr(torch.ops, namespace), name), variant or "default")._schema
    except AttributeError:
        return False
    aliased = [result.alias_info for result in schema.returns if result.alias_info is not None]
    written = any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)
    return bool(aliased) and not written
