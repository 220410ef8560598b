"""Plain names of the dtypes that PyTorch's test sources write as `torch.half` or `floating_types_and(torch.bool)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}

FLOATING = frozenset({"float32", "float64"})
INTEGRAL = frozenset({"uint8", "int8", "int16", "int32", "int64"})
COMPLEX = frozenset({"complex64", "complex128"})

_GROUPS: Mapping[str, frozenset[str]] = {
    "floating_types": FLOATING,
    "integral_types": INTEGRAL,
    "complex_types": COMPLEX,
    "all_types": FLOATING | INTEGRAL,
    "floating_and_complex_types": FLOATING | COMPLEX,
    "all_types_and_complex": FLOATING | INTEGRAL | COMPLEX,
    "all_types_and_half": FLOATING | INTEGRAL | {"float16"},
}


def dtype_of(path: str) -> str:
    """`float16` for `torch.float16` and for `torch.half`."""
    name = path.removeprefix("torch.")
    return _ALIASES.get(name, name)


def dtype_functions() -> dict[str, Callable[..., frozenset[str]]]:
    """The functions of torch.testing._internal.common_dtype that OpInfos call; they take and return plain names."""
    functions: dict[str, Callable[..., frozenset[str]]] = {
        "custom_types": lambda *dtypes: frozenset(dtypes),
        "empty_types": frozenset,
    }
    for name, group in _GROUPS.items():
        functions[name] = _constant(group)
        functions[f"{name}_and"] = _extended(group)
    return functions


def _constant(group: frozenset[str]) -> Callable[..., frozenset[str]]:
    return lambda: group


def _extended(group: frozenset[str]) -> Callable[..., frozenset[str]]:
    return lambda *dtypes: group | frozenset(dtypes)
