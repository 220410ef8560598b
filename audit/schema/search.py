"""Searches for arguments that the CPU accepts, for an overload that no sample and no neighbour explains.

Hypothesis draws the arguments from the schema's types: tensors of related shapes, small integers, the usual scalars.
The CPU's error messages steer the next draws: a message that asks for a dtype, a number of dimensions or the same
size narrows what is drawn.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from .calls import SchemaCall, overload_of
from .recipes import UnencodableError, encode, signature

TRIES = 400
WANTED_DTYPES = re.compile(
    r"(?:expected|must be|should be|to be|of type|dtype|only supports?)[^.]{0,60}?"
    r"\b(Long|Int|Bool|Byte|Float|Half|BFloat16|Double|int64|int32|bool|uint8|float32|ComplexFloat|complex)\b",
    re.IGNORECASE,
)
DTYPE_NAMES = {
    "long": torch.int64,
    "int64": torch.int64,
    "int": torch.int32,
    "int32": torch.int32,
    "bool": torch.bool,
    "byte": torch.uint8,
    "uint8": torch.uint8,
    "float": torch.float32,
    "float32": torch.float32,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "complexfloat": torch.complex64,
    "complex": torch.complex64,
}
WANTED_DIMS = re.compile(r"(\d)[- ]?(?:D\b|dim)", re.IGNORECASE)
# What operators take as text, by the name of the argument; any other text argument takes one of all of them.
TEXTS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply", "max", "min"),
    "p": ("fro", "nuc"),
    "ord": ("fro", "nuc"),
    "padding": ("same", "valid"),
    "mode": ("constant", "reflect", "replicate", "circular", "reduced", "complete", "linear"),
    "indexing": ("ij", "xy"),
    "rounding_mode": ("floor", "trunc"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "side": ("left", "right"),
    "driver": ("gels", "gelsy", "gelsd"),
    "UPLO": ("L", "U"),
    "approximate": ("none", "tanh"),
    "equation": ("ij,jk->ik", "ij->ji", "i,i->"),
}
ALL_TEXTS = tuple(sorted({text for texts in TEXTS.values() for text in texts}))


@dataclass
class Found:
    """What a search gave: accepted calls, how many were tried, and the errors of the others."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    tried: int = 0
    errors: Counter[str] = field(default_factory=Counter)


class _Drawer:
    """Draws arguments for one schema; what errors taught it makes some choices more likely."""

    def __init__(self, name: str, seed: int) -> None:
        self._random = random.Random(f"{seed}:{name}")
        self._arguments = overload_of(name)._schema.arguments
        self._dtypes: list[torch.dtype] = [torch.float32] * 6 + [torch.int64] * 2 + [torch.bool, torch.complex64]
        self._dims: list[int] = [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]

    def learn(self, message: str) -> None:
        """Make what the error message asks for more likely."""
        for word in WANTED_DTYPES.findall(message):
            self._dtypes.append(DTYPE_NAMES.get(word.lower(), torch.float32))
        for digit in WANTED_DIMS.findall(message):
            if int(digit) <= 5:
                self._dims.extend([int(digit)] * 2)

    def draw(self) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for one call."""
        choose = self._random
        size = choose.choice([1, 2, 3, 4, 6, 8])
        same = choose.random() < 0.7
        dims = choose.choice(self._dims)
        shape = [size if choose.random() < 0.6 else choose.choice([1, 2, 3, 4, 6]) for _ in range(dims)]
        dtype = choose.choice(self._dtypes)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for argument in self._arguments:
            if argument.has_default_value() and choose.random() < 0.6:
                if argument.kwarg_only:
                    continue
                value = argument.default_value
            else:
                value = self._value(argument, shape if same else None, dtype)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _value(self, argument: Any, shape: list[int] | None, dtype: torch.dtype) -> Any:
        kind = str(argument.type)
        choose = self._random
        if kind.startswith("Optional["):
            if choose.random() < 0.5:
                return None
            kind = kind[len("Optional[") : -1]
        if kind == "Tensor":
            return self._tensor(argument.name, shape, dtype)
        if kind.startswith("List["):
            length = argument.N or choose.choice([1, 2, 2, 3])
            inner = kind[len("List[") : -1]
            return [self._plain(inner, argument.name, shape, dtype) for _ in range(length)]
        return self._plain(kind, argument.name, shape, dtype)

    def _plain(self, kind: str, name: str, shape: list[int] | None, dtype: torch.dtype) -> Any:
        choose = self._random
        if kind in ("Tensor", "Optional[Tensor]"):
            return self._tensor(name, shape, dtype)
        if kind in ("int", "SymInt"):
            if "dtype" in name:
                return torch.float32
            return choose.choice([0, 0, 1, 1, 2, 2, 3, 4, 6, 8, -1])
        if kind == "bool":
            return choose.random() < 0.5
        if kind == "float":
            return choose.choice([0.0, 0.5, 1.0, 2.0, 1e-5])
        if kind in ("number", "Scalar"):
            return choose.choice([1, 2, 0.5, 1.0, -1.5])
        if kind == "str":
            return choose.choice(TEXTS.get(name, ALL_TEXTS))
        if kind == "Device":
            return torch.device("cpu")
        return None

    def _tensor(self, name: str, shape: list[int] | None, dtype: torch.dtype) -> torch.Tensor:
        choose = self._random
        if shape is None or choose.random() < 0.15:
            shape = [choose.choice([1, 2, 3, 4, 6]) for _ in range(choose.choice(self._dims))]
        if re.search(r"ind(?:ex|ices)|target|offset|length|size_tensor|pivot|batch", name) and choose.random() < 0.8:
            dtype = torch.int64
        elif "mask" in name and choose.random() < 0.6:
            dtype = torch.bool
        elif choose.random() < 0.1:
            dtype = choose.choice(self._dtypes)
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(shape).to(dtype)
        return torch.randint(0, 2, shape).to(dtype)


def search(name: str, wanted: int, seed: int = 0, tries: int = TRIES) -> Found:
    """Look for `wanted` different accepted calls of the overload on the CPU, within so many tries."""
    found = Found()
    drawer = _Drawer(name, seed)
    call = SchemaCall(name)
    seen: set[str] = set()
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while found.tried < tries and len(found.calls) < wanted:
            args, kwargs = drawer.draw()
            found.tried += 1
            try:
                recipe = {
                    "args": [encode(a) for a in args],
                    "kwargs": {k: encode(v) for k, v in kwargs.items()},
                    "dtype": "float32",
                }
                call(*args, **kwargs)
            except UnencodableError:
                continue
            except Exception as error:  # whatever the CPU refuses teaches what to draw next
                message = " ".join(str(error).split())[:160]
                found.errors[message] += 1
                drawer.learn(message)
                continue
            mark = signature([recipe["args"], recipe["kwargs"]])
            if mark not in seen:
                seen.add(mark)
                found.calls.append(recipe)
    return found
