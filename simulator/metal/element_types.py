"""Whether a kernel reads the numbers that it is given: half precision through a `float*` is garbage, and no crash.

Metal asks nothing of the sort, and so torch binds anything to anything. What is known here is the caller's dtype. Bits
of floating-point tensors may be read as integers, and raw bytes as anything; the rest is a mistake.
"""

from __future__ import annotations

from typing import Literal

Numbers = Literal["", "half", "bfloat", "float", "double", "int16", "int32", "int64"]
"""What lies in a buffer, or what a kernel reads of it; "" where nobody says, as of structs and of raw bytes."""

PARAMETER_NUMBERS: tuple[Numbers, ...] = ("", "half", "bfloat", "float", "int16", "int32", "int64")
"""By the number that `msl_binding` of include/msl/kernel.h gives them."""

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
    """What a tensor or an array of this dtype holds; a dtype of single bytes may hold anything."""
    return _OF_DTYPE.get(str(dtype).removeprefix("torch."), "")


def numbers_of_value(is_integer: bool, cast: str) -> Numbers:
    """What a Python number becomes under torch's `arg_casts`."""
    return _OF_CAST.get(cast, "") if cast else "int64" if is_integer else "float"


def mistaken(given: Numbers, by_value: bool, parameter: Numbers) -> str | None:
    """Why a kernel that reads `parameter` gets something else than the caller bound, or None."""
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


def of_another_width(given: Numbers, by_value: bool, parameter: Numbers) -> str | None:
    """Why integers of a tensor are read in pieces, or None: allowed, and hardly ever meant."""
    if by_value or given == parameter or not (_is_integer(given) and _is_integer(parameter)):
        return None
    return f"holds {given}, and the kernel reads {parameter}"


def _is_integer(numbers: Numbers) -> bool:
    return numbers.startswith("int")


def _shown(numbers: Numbers) -> str:
    return "integers" if _is_integer(numbers) else f"numbers of type {numbers}"
