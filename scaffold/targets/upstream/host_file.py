"""The host code of a kernel family as a file of PyTorch's tree.

`kernels/FAMILY/upstream.mm` has the special includes and the functions. This module adds the beginning and the end that
every file of `aten/src/ATen/native/mps/operations` has: the common includes, the headers of the operators that are
called and defined, the namespace, and the Metal library.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from ...errors import ScaffoldError
from ..rendering import render
from .unused import defined, without

_SHARED = re.compile(r'^#include "(shared/\w+\.h)"\n', re.MULTILINE)
_SPECIAL = re.compile(r"(?:#include <[^>\n]+>\n|\n)*")
_CALL = re.compile(r"\bat::([a-z_]\w*)\(")
_COMMON = ("ATen/mps/MPSProfiler.h", "ATen/native/mps/OperationUtils.h")
# Headers that declare one of these names.
_DECLARED = {
    "ATen/MemoryOverlap.h": re.compile(r"\bassert_no_\w*overlap\("),
    "ATen/native/Resize.h": re.compile(r"\bresize_output\("),
}
_NOT_OPERATORS = frozenset({"dtype"})


def host_file(path: Path, camel: str, operators: Iterable[str]) -> str:
    """The text of the file for the family whose host code is `path`.

    `camel`: the name of the Metal file. `operators`: those that the family has kernels for, without namespace.
    Raises ScaffoldError for a file that cannot be read.
    """
    try:
        text = path.read_text("utf-8")
        special, body = _split(text)
        shared = [(path.parents[1] / name).read_text("utf-8") for name in _SHARED.findall(body)]
    except OSError as error:
        raise ScaffoldError(f"cannot read {error.filename or path}: {error.strerror}") from None
    inlined = iter(shared)
    body = without(_SHARED.sub(lambda _: next(inlined), body), defined("\n".join(shared)))
    includes = {*_COMMON, *special, *(header for header, names in _DECLARED.items() if names.search(body))}
    return render(
        "upstream/host_file.mm.j2",
        camel=camel,
        includes=sorted(header for header in includes if "/" in header),
        standard=sorted(header for header in includes if "/" not in header),
        operators=_operator_headers(body, operators),
        body=body,
    )


def without_unused(text: str, kernels: Collection[str]) -> str:
    """The text of a file with only these kernels, and without functions that only the removed kernels called.

    A release may have some of the kernels already, and lack some of the operators.
    """
    return without(text, [name for name in defined(text) if name.endswith("_mps")], kernels)


def _split(text: str) -> tuple[list[str], str]:
    """The special includes, and the functions."""
    match = _SPECIAL.match(text)
    end = match.end() if match else 0
    return re.findall(r"<([^>]+)>", text[:end]), text[end:]


def _operator_headers(body: str, operators: Iterable[str]) -> list[str]:
    """The names of the headers for the operators that are called, and for those that are defined."""
    called = {name.removesuffix("_out") for name in _CALL.findall(body)} - _NOT_OPERATORS
    bases = {operator.rstrip("_") for operator in operators}
    return sorted(called | {f"{base}_native" for base in bases if _defines(body, base)})


def _defines(body: str, base: str) -> bool:
    """Whether a function `BASE_mps` is defined, or that of another overload of BASE, but not of its derivatives."""
    name = rf"{base}_?(?:_(?!backward|forward|jvp)\w+)?_mps\b"
    return re.search(rf"^(?:TORCH_IMPL_FUNC\()?(?:[\w:<>&,]+ )*{name}", body, re.MULTILINE) is not None
