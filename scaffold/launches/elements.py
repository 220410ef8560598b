"""Element types of tensors as Metal calls them, and as names of arguments let expect."""

from __future__ import annotations

from ..operators.observation import FOLLOWS

# What every kernel is instantiated for.
FLOATING_ELEMENTS = ("float", "half", "bfloat")
METAL_ELEMENTS = {
    "bool": "bool",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "uchar",
    "uint64": "ulong",
    "uint32": "uint",
    "complex64": "float2",
    "float32": "float",
}
_INDEX_NAMES = ("indices", "index", "mode_indices", "counts", "pivots", "info", "lengths", "offsets")


def element_by_name(name: str) -> str:
    """What a tensor of that name holds where no call was seen: indices are 64-bit integers, masks are bool."""
    if name in _INDEX_NAMES or name.endswith("indices"):
        return "int64"
    return "bool" if name == "mask" or name.endswith("_mask") else FOLLOWS
