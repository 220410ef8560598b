"""Parses kernel arguments of a command line: `2.5`, `float[1024]:random`, `@weights.npy`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MetalValueError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_ARRAY = re.compile(r"(\w+)\[\s*(\d{1,18}(?:\s*,\s*\d{1,18})*)\s*\](?::(\w+))?")
_DTYPES = {
    "float": "float32",
    "half": "float16",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "bool": "bool",
}
MOST_ELEMENTS = 2**30
_FILLS = ("zeros", "ones", "arange", "random")
_SHOWN = 8


def parse_argument(text: str) -> int | float | Array:
    """Parse a number, a generated array or an array from a file.

    Raises:
        MetalValueError: the text is none of these.
    """
    if text.startswith("@"):
        return _load(Path(text[1:]))
    match = _ARRAY.fullmatch(text)
    if match:
        return _make(match[1], [int(n) for n in match[2].split(",")], match[3] or "zeros")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise MetalValueError(f"--arg {text}: give a number, an array such as float[1024]:random, or @FILE.npy")


def _load(path: Path) -> Array:
    import numpy as np

    try:
        return np.ascontiguousarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError) as error:
        raise MetalValueError(f"--arg @{path}: not a readable .npy file ({error})") from error


def _make(dtype: str, shape: Sequence[int], fill: str) -> Array:
    import numpy as np

    if dtype not in _DTYPES:
        raise MetalValueError(f"--arg: unknown type {dtype}; use one of {', '.join(_DTYPES)}")
    if fill not in _FILLS:
        raise MetalValueError(f"--arg: unknown content {fill}; use one of {', '.join(_FILLS)}")
    kind = np.dtype(_DTYPES[dtype])
    size = math.prod(shape)
    if size > MOST_ELEMENTS:
        raise MetalValueError(f"--arg: {dtype}{list(shape)} has {size:,} elements; at most {MOST_ELEMENTS:,} are made")
    if fill == "arange":
        return np.arange(size).astype(kind).reshape(shape)
    if fill == "random":
        generator = np.random.default_rng(0)  # the same numbers in every run
        values = generator.standard_normal(size) if kind.kind == "f" else generator.integers(0, 100, size)
        return values.astype(kind).reshape(shape)
    return np.full(shape, fill == "ones", dtype=kind)


def parse_shape(text: str | None) -> list[int] | None:
    """Parse `64,64`.

    Raises:
        MetalValueError: the text has another form.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise MetalValueError(f"{text}: give numbers such as 1024 or 64,64") from None


def _indexed(words: Sequence[str], option: str) -> dict[int, str]:
    values = {}
    for word in words:
        index, _, value = word.partition("=")
        if not index.isdigit() or not value:
            raise MetalValueError(f"{option} {word}: give INDEX=VALUE")
        values[int(index)] = value
    return values


def parse_casts(words: Sequence[str]) -> dict[int, str] | None:
    """Parse `1=fp16` into torch's `arg_casts`."""
    return _indexed(words, "--cast") or None


def parse_outputs(words: Sequence[str], values: Sequence[object]) -> list[tuple[Path, Array]]:
    """Parse `0=FILE.npy` into files and the arrays to write to them.

    Raises:
        MetalValueError: there is no such argument, or it is not an array.
    """
    outputs: list[tuple[Path, Array]] = []
    for index, path in _indexed(words, "--out").items():
        value: Any = values[index] if index < len(values) else None
        if not hasattr(value, "dtype"):
            raise MetalValueError(f"--out {index}={path}: argument {index} is not an array")
        outputs.append((Path(path), value))
    return outputs


def preview(index: int, value: Any) -> str:
    """An argument on one line; an array by its first elements."""
    if not hasattr(value, "dtype"):
        return f"  {index}: {value}"
    flat = value.reshape(-1)
    shown = " ".join(str(v) for v in flat[:_SHOWN].tolist())
    more = " ..." if flat.size > _SHOWN else ""
    return f"  {index}: {value.dtype}{list(value.shape)} {shown}{more}"


def plain_argument(value: Any) -> Any:
    """An argument as JSON data: a number, or an array as dtype, shape and all elements."""
    if not hasattr(value, "dtype"):
        return value
    return {"dtype": str(value.dtype), "shape": list(value.shape), "values": value.tolist()}
