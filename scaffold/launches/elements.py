"""Element types in Metal, by dtype and by the name of an argument."""

from __future__ import annotations

from ..operators.observation import FOLLOWS

# Every kernel is instantiated for these types.
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
# Reserved words of C++ or Metal that torchgen does not rename.
_RESERVED = frozenset(("half", "float", "long", "device", "constant", "kernel", "thread", "out_", "default"))


def element_by_name(name: str) -> str:
    """The element type of a tensor by its name, if no call was observed: int64 for indices, bool for masks."""
    if name in _INDEX_NAMES or name.endswith("indices"):
        return "int64"
    return "bool" if name == "mask" or name.endswith("_mask") else FOLLOWS


def metal_name(name: str) -> str:
    """The name of an argument in Metal: with an underscore if it is a reserved word."""
    return f"{name}_" if name in _RESERVED else name
