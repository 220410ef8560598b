"""Searches for arguments that the CPU accepts, for an overload without samples and without calls of related overloads.

Arguments are drawn from the schema's types: tensors of related shapes, small integers, the usual scalars. The CPU's
error messages narrow the next draws: a message may ask for a dtype, a number of dimensions or the same size.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import torch

from ..calls.invocation import overload_of
from ..calls.recipes import UnencodableError, encode
from ..sources.argument_values import WORDS

# Makes one call and gives the CPU's refusal, or None when it was accepted.
TryCall = Callable[[dict[str, Any]], str | None]

TRIES = 400
WANTED_DTYPES = re.compile(
    r"(?:expected|must be|should be|to be|of type|dtype|only supports?)[^.]{0,60}?"
    r"\b(Long|Int|Bool|Byte|Float|Half|BFloat16|Double|int64|int32|bool|uint8|float32|ComplexFloat|complex)\b",
    re.IGNORECASE,
)
# What messages call dtypes, beside their own names.
DTYPE_WORDS = {"long": "int64", "int": "int32", "byte": "uint8", "float": "float32", "half": "float16"}
DTYPE_WORDS |= {"complexfloat": "complex64", "complex": "complex64", "double": "float32"}
WANTED_DIMS = re.compile(r"(\d)[- ]?(?:D\b|dim)", re.IGNORECASE)
# What operators take as text, by the name of the argument; any other text argument takes one of all of them.
TEXTS = WORDS | {"reduce": (*WORDS["reduce"], "add", "multiply"), "equation": ("ij,jk->ik", "ij->ji", "i,i->")}
ALL_TEXTS = tuple(sorted({text for texts in TEXTS.values() for text in texts}))


class _Drawer:
    """Draws arguments for one schema. Each error message changes how likely some choices are."""

    def __init__(self, name: str, seed: int) -> None:
        self._random = random.Random(f"{seed}:{name}")
        self._arguments = overload_of(name)._schema.arguments
        self._dtypes: list[torch.dtype] = [torch.float32] * 6 + [torch.int64] * 2 + [torch.bool, torch.complex64]
        self._dims: list[int] = [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]

    def adapt(self, message: str) -> None:
        """Make what the error message asks for more likely."""
        for word in WANTED_DTYPES.findall(message):
            self._dtypes.append(getattr(torch, DTYPE_WORDS.get(word.lower(), word.lower())))
        for digit in WANTED_DIMS.findall(message):
            if int(digit) <= 5:
                self._dims.extend([int(digit)] * 2)

    def draw(self) -> tuple[list[Any], dict[str, Any], torch.dtype]:
        """Arguments for one call, and the dtype that most of its tensors have."""
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
        return args, kwargs, dtype

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


def search(name: str, attempt: TryCall, enough: Callable[[], bool], seed: int = 0, tries: int = TRIES) -> None:
    """Generate random calls of the overload and pass each to `attempt`, until `enough()` or after `tries` calls."""
    drawer = _Drawer(name, seed)
    torch.manual_seed(seed)
    for _ in range(tries):
        if enough():
            return
        args, kwargs, dtype = drawer.draw()
        try:
            recipe = {
                "args": [encode(a) for a in args],
                "kwargs": {k: encode(v) for k, v in kwargs.items()},
                "dtype": str(dtype).removeprefix("torch."),
            }
        except UnencodableError:
            continue
        refusal = attempt(recipe)
        if refusal is not None:
            drawer.adapt(refusal)
