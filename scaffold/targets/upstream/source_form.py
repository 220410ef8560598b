"""The form in which PyTorch keeps C++ and Metal: lines of at most 120 columns, and no marks of a scaffold."""

from __future__ import annotations

import re
import textwrap
from collections import deque

WIDTH = 120
_MARK = re.compile(r"^[ \t]*// mpsmith: (?:begin|end) [\w.]+\n", re.MULTILINE)
# The check of a kernel that is not written yet. What follows it in its region cannot be reached.
_UNWRITTEN = re.compile(
    r"(?P<check>^[ ]*TORCH_CHECK_NOT_IMPLEMENTED\([^;]*is not written yet[^;]*;[^;]*;\n).*?(?=^[ \t]*// mpsmith: end )",
    re.MULTILINE | re.DOTALL,
)


def without_marks(text: str) -> str:
    """The text for a patch: without marks, and without code after the check of a kernel that is not written yet."""
    return _MARK.sub("", _UNWRITTEN.sub(lambda match: match["check"], text))


def folded(text: str) -> str:
    """The text with long lines broken after commas, and long comments between words, but not in macros."""
    lines: list[str] = []
    rest = deque(text.splitlines())
    while rest:
        line = rest.popleft()
        if len(line) <= WIDTH or line.endswith("\\"):
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        if line.lstrip().startswith("// "):
            *whole, carried = textwrap.wrap(line, WIDTH, subsequent_indent=f"{indent}// ", break_long_words=False)
            lines += whole
            if rest and re.match(rf"{indent}// [a-z]", rest[0]):  # the sentence continues
                rest[0] = f"{carried} {rest[0].lstrip().removeprefix('// ')}"
            else:
                lines.append(carried)
        else:
            lines += _broken(line, indent)
    return "".join(f"{line}\n" for line in lines)


def _broken(line: str, indent: str) -> list[str]:
    parts = [line]
    while len(parts[-1]) > WIDTH:
        last = parts[-1]
        code = last[:WIDTH].partition("//")[0]
        commas = [at.end() for at in re.finditer(", ", code) if last.count('"', 0, at.start()) % 2 == 0]
        if not commas or commas[-1] <= len(indent) + 4:
            break
        parts[-1:] = [last[: commas[-1]].rstrip(), f"{indent}    {last[commas[-1] :]}"]
    return parts
