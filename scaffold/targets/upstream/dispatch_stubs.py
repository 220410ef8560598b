"""The dispatch stubs of PyTorch's native code: functions that each backend fills in with REGISTER_DISPATCH.

Where an operator has one, its checks, outputs and TensorIterator are shared by all backends, and a kernel for mps is
one function. They are found in the headers that ship with torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STUB = re.compile(r"DECLARE_DISPATCH\(\s*(?P<type>[^;]*?),\s*(?P<name>\w+)\s*\)", re.DOTALL)
_ALIAS = re.compile(r"using (?P<name>\w+)\s*=\s*(?P<type>void\s*\(\*\)\([^;]*\));", re.DOTALL)
_FUNCTION = re.compile(r"^void\s*\(\*\)\((?P<parameters>.*)\)$", re.DOTALL)
_ITERATOR = re.compile(r"^(at::)?TensorIterator(Base)?\s*&")


@dataclass(frozen=True)
class Stub:
    """A dispatch stub whose first parameter is a TensorIterator.

    `header`: where it is declared, relative to the include folder. `parameters`: the types behind the iterator.
    """

    name: str
    header: str
    iterator: str
    parameters: tuple[str, ...]

    @property
    def takes_scalars(self) -> bool:
        """Whether all parameters behind the iterator are Scalars."""
        return all(re.search(r"\bScalar\s*&$", parameter) for parameter in self.parameters)


def stub_for(operator: str, include: Path) -> Stub | None:
    """The stub named after an operator, where it works on a TensorIterator."""
    return _stubs(include).get(f"{operator.strip('_')}_stub")


@cache
def _stubs(include: Path) -> dict[str, Stub]:
    found: dict[str, Stub] = {}
    for path in sorted((include / "ATen" / "native").glob("*.h")):
        text = path.read_text("utf-8", "replace")
        if "DECLARE_DISPATCH" not in text:
            continue
        aliases = {match["name"]: " ".join(match["type"].split()) for match in _ALIAS.finditer(text)}
        for match in _STUB.finditer(text):
            written = " ".join(match["type"].split())
            function = _FUNCTION.match(aliases.get(written, written))
            parameters = [one.strip() for one in function["parameters"].split(",")] if function else []
            if parameters and _ITERATOR.match(parameters[0]):
                types = tuple(_without_name(one) for one in parameters[1:])
                header = str(path.relative_to(include))
                stub = Stub(match["name"], header, _without_name(parameters[0]), types)
                found[stub.name] = stub
    return found


def _without_name(parameter: str) -> str:
    """The type of a parameter that may have a name: `const Scalar& alpha` is `const Scalar&`."""
    found = re.match(r"^(?P<type>.*[&*>])\s*\w+$", parameter)
    if found:
        return found["type"].strip()
    words = parameter.split()
    known = ("int64_t", "bool", "double", "float", "int")
    return " ".join(words[:-1]) if len(words) > 1 and words[-2] in known else parameter
