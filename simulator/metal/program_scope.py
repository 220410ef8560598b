"""Variables at program scope that hold a thread's position: `uint2 gid [[thread_position_in_grid]];` (Metal 3.1)."""

from __future__ import annotations

from .attributes import BUILTINS
from .declarations import Program
from .problems import Problems
from .tokens import Tokens

_QUALIFIERS = frozenset({"const", "constant", "static", "thread", ""})
_BEFORE_VALUES = frozenset({"return", "else", "case", "do"})


def rewrite_program_scope(tokens: Tokens, program: Program, problems: Problems, real_address_spaces: bool) -> None:
    """Replace each such variable by a function that returns the running thread's value, and each use by its call.

    Buffers, textures and samplers at program scope (Metal 3.2) are not supported.
    """
    text = tokens.text
    for begin, end, attribute in program.bound:
        name, call = text[end - 1], f"msl_at_{text[end - 1]}()"
        if attribute not in BUILTINS:
            message = f"the simulator does not support [[{attribute}(n)]] at program scope: pass '{name}' to the kernel"
            problems.add(begin, "not-supported", message)
            continue
        kind = " ".join(word for word in text[begin : end - 1] if word not in _QUALIFIERS)
        hidden = {i for i in range(end, len(text)) if text[i] == name and _declares(text[i - 1])}
        for function in program.functions:
            inside = range(function.parameters_begin, function.body_end)
            hidden.update(inside if not hidden.isdisjoint(inside) else ())
        for i in range(end, len(text)):
            if text[i] == name and i not in hidden and text[i - 1] not in (".", "->"):
                text[i] = call
        tokens.erase(begin, end)
        body = f"{{ return metal::msl_builtin<{kind}>(metal::msl_running().{attribute}()); }}"
        text[begin] = f"inline {kind} {call} {body}" if not real_address_spaces else f"{kind} {call};"


def _declares(before: str) -> bool:
    """Whether a name after this word is a declaration, which hides the variable."""
    return before.isidentifier() and before not in _BEFORE_VALUES
