"""Mistakes of host code that compile and link, and fail or compute wrong values when they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...simulator.clang import Diagnostic
from ...simulator.objc.comments import blanked

COALESCED = "coalesced-shape"
# A variable that is a TensorIterator, by its type or by what it is built from.
_ITERATOR = re.compile(
    r"\bTensorIterator(?:Base)?\s*[&*]?\s+[&*]?(?P<declared>\w+)\s*[;,)={(]"
    r"|\bauto\s*&?\s*(?P<built>\w+)\s*=\s*[^;]*?\bTensorIterator(?:Config)?\b"
)
# What gives a tensor the shape that it is asked for.
_SHAPED = r"\b(?P<call>expand|view|reshape|broadcast_to|resize_|empty|zeros|ones|full|new_empty|resize_output)\s*\("


def check_host_code(path: Path, text: str) -> list[Diagnostic]:
    """Findings for one file of C++ or Objective-C++."""
    return list(_coalesced_shapes(path, blanked(text), text))


def _coalesced_shapes(path: Path, code: str, text: str) -> Iterator[Diagnostic]:
    """A TensorIterator joins dimensions when it is built, and orders them anew: of tensors of 5x5 its shape is 25."""
    names = {found["declared"] or found["built"] for found in _ITERATOR.finditer(code)}
    for name in sorted(names):
        used = re.compile(rf"{_SHAPED}(?:[^;()]|\([^;()]*\)|\()*?\b{name}\s*(?:\.|->)\s*shape\s*\(\s*\)")
        for found in used.finditer(code):
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            yield Diagnostic(
                str(path),
                line,
                column,
                "error",
                f"{found['call']}(... {name}.shape() ...): a TensorIterator joins dimensions when it is built, so that "
                "its shape is not that of the operands; use the sizes of the output",
                COALESCED,
            )
