"""Kernels that a tree's C++ shares between backends: which dispatch stubs each of them calls.

Such a kernel is compiled into torch already, and runs on mps once a file there fills its stubs. Most stubs are named
after their operator; for the others, only the C++ shows which kernel calls them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..objc.comments import without_comments

NATIVE = Path("aten/src/ATen/native")

_STUB = re.compile(r"\bDEFINE_DISPATCH\(\s*(\w+)\s*\)")
# A function at the start of a line: its head up to the `{`. Macros count as functions, too.
_FUNCTION = re.compile(
    r"^(?!\s|#|namespace\b|struct\b|class\b|enum\b)(?:TORCH_IMPL_FUNC\s*\(\s*(?P<structured>\w+)\s*\)\s*"
    r"|[^\n;={}(]*?\b(?P<plain>\w+)\s*)\([^;{}]*\)\s*(?:const\s*)?\{",
    re.MULTILINE,
)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


@functools.cache
def stubs_called(root: Path) -> Mapping[str, frozenset[str]]:
    """The stubs that each function below `native/` calls, itself or through others of its file.

    Empty where the tree has none of these files.
    """
    called: dict[str, frozenset[str]] = {}
    for path in sorted((root / NATIVE).glob("*.cpp")):
        called.update(_of_file(without_comments(path.read_text("utf-8", errors="replace"))))
    return called


def _of_file(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    stubs = frozenset(_STUB.findall(text))
    if not stubs:
        return
    words: dict[str, set[str]] = {}
    for name, body in _functions(text):
        words.setdefault(name, set()).update(_WORD.findall(body))
    for name in words:
        reached = {name}
        waiting = [name]
        while waiting:
            for other in words[waiting.pop()] & words.keys() - reached:
                reached.add(other)
                waiting.append(other)
        called_stubs = stubs.intersection(word for function in reached for word in words[function])
        if called_stubs:
            yield name, called_stubs


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Name and body of each function; a body ends with the first brace at the start of a line."""
    for head in _FUNCTION.finditer(text):
        end = text.find("\n}", head.end())
        yield head["structured"] or head["plain"], text[head.end() : end if end >= 0 else len(text)]
