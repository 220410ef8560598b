"""The dispatch stubs of PyTorch's native code: functions that each backend defines with REGISTER_DISPATCH.

All backends share the checks, outputs and TensorIterator of such an operator; its kernel for mps is one function. The
stubs are declared in the headers that ship with torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .. import Request

_STUB = re.compile(r"DECLARE_DISPATCH\(\s*(?P<type>[^;]*?),\s*(?P<name>\w+)\s*\)", re.DOTALL)
_ALIAS = re.compile(r"using (?P<name>\w+)\s*=\s*(?P<type>void\s*\(\*\)\([^;]*\));", re.DOTALL)
_FUNCTION = re.compile(r"^void\s*\(\*\)\((?P<parameters>.*)\)$", re.DOTALL)
# By the number of inputs: the word in names of MetalShaderLibrary and REGISTER_ macros, and the Scalars they pass.
_WORDS = {1: "unary", 2: "binary", 3: "ternary"}
_MOST_SCALARS = {1: 1, 2: 1, 3: 0}
_ITERATOR = re.compile(r"^(at::)?TensorIterator(Base)?\s*&")


@dataclass(frozen=True)
class StubFunctor:
    """The functor of a stub's kernel in Metal: its parameters, and the REGISTER_ line that instantiates it."""

    macro: str
    name: str
    parameters: str
    first: str
    alpha: bool

    def line(self, metal: str) -> str:
        """The line for one Metal type."""
        types = (metal, metal, metal) if self.alpha else (metal, metal)
        return f"{self.macro}({self.name}, {', '.join(types)});"


@dataclass(frozen=True)
class Stub:
    """A dispatch stub whose first parameter is a TensorIterator.

    `header`: where it is declared, relative to the include folder. `parameters`: the types after the iterator.
    """

    name: str
    header: str
    iterator: str
    parameters: tuple[str, ...]

    @property
    def takes_scalars(self) -> bool:
        """Whether all parameters after the iterator are Scalars."""
        return all(re.search(r"\bScalar\s*&$", parameter) for parameter in self.parameters)

    def helper(self, inputs: Sequence[str]) -> str:
        """The function of MetalShaderLibrary that runs the kernel on these tensors; empty if none fits."""
        if not self.takes_scalars or len(self.parameters) > _MOST_SCALARS.get(len(inputs), -1):
            return ""
        return f"exec_{_WORDS[len(inputs)]}_kernel"

    def functor(self, inputs: Sequence[str], name: str) -> StubFunctor | None:
        """The functor that `helper` instantiates; None if none fits."""
        if not self.helper(inputs):
            return None
        alpha = bool(self.parameters)
        macro = f"REGISTER_{_WORDS[len(inputs)].upper()}{'_ALPHA' if alpha else ''}_OP"
        parameters = ", ".join(f"const T {parameter}" for parameter in [*inputs, *(["alpha"] if alpha else [])])
        return StubFunctor(macro, name, parameters, inputs[0], alpha)


def stub_of(request: Request, rows: Mapping[str, Mapping[str, str]], include: Path) -> Stub | None:
    """The operator's dispatch stub, if all backends share the kernel that calls it; else None.

    Also None if no function of this release's MetalShaderLibrary runs the kernel: then a separate kernel is simpler.
    `rows`: the kernel of each dispatch key by overload.
    """
    if len(rows) != 1 or not request.kind.elementwise:
        return None
    if any(len(launch.outputs) != 1 for launch in request.launches):
        return None  # the kernels that torch generates from a functor have one result
    (by_key,) = rows.values()
    shared = by_key.get("CPU") is not None and by_key.get("CPU") == by_key.get("CUDA")
    stub = stub_for(request.operator.name, include) if shared else None
    helper = stub.helper([buffer.name for buffer in request.launches[0].inputs]) if stub else ""
    return stub if helper and helper in _library(include) else None


def stub_for(operator: str, include: Path) -> Stub | None:
    """The stub named after an operator, if it works on a TensorIterator; else None."""
    name = operator.strip("_")
    stubs = _stubs(include)
    return stubs.get(f"{name}_stub") or stubs.get(f"{name.removeprefix('special_')}_stub")


@cache
def _library(include: Path) -> str:
    """The header of the functions that run elementwise kernels; empty if the release has none."""
    header = include / "ATen" / "native" / "mps" / "MetalShaderLibrary.h"
    return header.read_text("utf-8", "replace") if header.is_file() else ""


@cache
def _stubs(include: Path) -> dict[str, Stub]:
    stubs: dict[str, Stub] = {}
    for path in sorted((include / "ATen" / "native").glob("*.h")):
        text = path.read_text("utf-8", "replace")
        if "DECLARE_DISPATCH" not in text:
            continue
        aliases = {match["name"]: " ".join(match["type"].split()) for match in _ALIAS.finditer(text)}
        for match in _STUB.finditer(text):
            written = " ".join(match["type"].split())
            function = _FUNCTION.match(aliases.get(written, written))
            parameters = [parameter.strip() for parameter in function["parameters"].split(",")] if function else []
            if parameters and _ITERATOR.match(parameters[0]):
                types = tuple(_without_name(parameter) for parameter in parameters[1:])
                header = str(path.relative_to(include))
                stub = Stub(match["name"], header, _without_name(parameters[0]), types)
                stubs[stub.name] = stub
    return stubs


def _without_name(parameter: str) -> str:
    """The type of a parameter that may have a name: `const Scalar& alpha` is `const Scalar&`."""
    named = re.match(r"^(?P<type>.*[&*>])\s*\w+$", parameter)
    if named:
        return named["type"].strip()
    words = parameter.split()
    scalars = ("int64_t", "bool", "double", "float", "int")
    return " ".join(words[:-1]) if len(words) > 1 and words[-2] in scalars else parameter
