"""Checks that a kernel reads the element type that is bound: half precision through a `float*` gives garbage.

Metal does not check this, so torch binds any tensor to any pointer. The simulator knows the caller's dtype. Bits of
floating-point tensors may be read as integers, and raw bytes as anything. Everything else is an error.
"""

from __future__ import annotations

from typing import Literal

Numbers = Literal["", "half", "bfloat", "float", "double", "int16", "int32", "int64"]
"""The element type of a buffer or of a parameter; "" if it is unknown, as for structs and raw bytes."""

PARAMETER_NUMBERS: tuple[Numbers, ...] = ("", "half", "bfloat", "float", "int16", "int32", "int64")
"""In the numbering of `msl_binding` in include/msl/kernel.h."""

HOST_NUMBERS: tuple[Numbers, ...] = (*PARAMETER_NUMBERS, "double")
"""In the numbering of Objective-C++: include/element_types.h in simulator.objc."""

_OF_DTYPE: dict[str, Numbers] = {
    "float16": "half",
    "complex32": "half",
    "bfloat16": "bfloat",
    "float32": "float",
    "complex64": "float",
    "float64": "double",
    "complex128": "double",
    "int16": "int16",
    "uint16": "int16",
    "int32": "int32",
    "uint32": "int32",
    "int64": "int64",
    "uint64": "int64",
}
_OF_CAST: dict[str, Numbers] = {"fp16": "half", "bf16": "bfloat", "int32": "int32", "int16": "int16"}


def numbers_of_dtype(dtype: object) -> Numbers:
    """The element type of a dtype; single bytes may be anything."""
    return _OF_DTYPE.get(str(dtype).removeprefix("torch."), "")


def numbers_of_value(is_integer: bool, cast: str) -> Numbers:
    """The type of a Python number under torch's `arg_casts`."""
    return _OF_CAST.get(cast, "") if cast else "int64" if is_integer else "float"


def element_mismatch(given: Numbers, by_value: bool, parameter: Numbers) -> str | None:
    """Why the bound elements do not fit a kernel that reads `parameter`, or None."""
    if not given or not parameter or given == parameter or (_is_integer(given) and _is_integer(parameter)):
        return None
    if by_value:
        cast = {"half": "fp16", "bfloat": "bf16"}.get(parameter)
        other = "an integer" if _is_integer(parameter) else "a float"
        way = f"arg_casts={{...: '{cast}'}}" if cast and not _is_integer(given) else other
        return f"passes {_shown(given)} by value, and the kernel reads {_shown(parameter)}: pass {way}"
    if _is_integer(parameter):
        return None
    return (
        f"holds {_shown(given)}, and the kernel reads {_shown(parameter)}: bind another kernel, or a .view() of the "
        "other dtype where its bits are meant"
    )


def _is_integer(numbers: Numbers) -> bool:
    return numbers.startswith("int")


def _shown(numbers: Numbers) -> str:
    return "integers" if _is_integer(numbers) else f"numbers of type {numbers}"
