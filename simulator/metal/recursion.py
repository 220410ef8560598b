"""Recursive functions: Metal 2.3 refuses them, later versions accept them. torch's own `gamma` is one."""

from __future__ import annotations

from .declarations import Program
from .problems import Problems
from .tokens import Tokens

# An overload of a library function may call the library's: `float exp(float2 v) { return exp(v.x); }`.
_LIBRARY_FUNCTIONS = frozenset(
    [
        *("abs", "acos", "acosh", "all", "any", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "clamp"),
        *("copysign", "cos", "cosh", "cross", "distance", "dot", "exp", "exp10", "exp2", "fabs", "floor"),
        *("fma", "fmax", "fmin", "fmod", "fract", "isfinite", "isinf", "isnan", "ldexp", "length", "log"),
        *("log10", "log2", "max", "min", "mix", "normalize", "pow", "powr", "rint", "round", "rsqrt"),
        *("saturate", "select", "sign", "sin", "sincos", "sinh", "sqrt", "step", "tan", "tanh", "trunc"),
    ]
)


def find_recursion(tokens: Tokens, program: Program, problems: Problems) -> None:
    """Warn about recursive functions. Calls are matched by name, so overloads and templates are not checked."""
    text = tokens.text
    counts: dict[str, int] = {}
    for function in program.functions:
        counts[function.name] = counts.get(function.name, 0) + 1
    # Nothing calls a kernel: in a kernel `abs`, the call `abs(x)` is that of the library.
    plain = {
        f.name: f for f in program.functions if not (f.is_template or f.in_class or f.is_kernel) and counts[f.name] == 1
    }
    calls: dict[str, list[tuple[str, int]]] = {
        name: [
            (text[i], i)
            for i in range(f.body_begin, f.body_end)
            if text[i] in plain and text[i + 1] == "(" and text[i - 1] not in (".", "->", "::")
        ]
        for name, f in plain.items()
    }
    for name in plain:
        reached: set[str] = set()
        stack = [callee for callee, _ in calls[name]]
        while stack:
            callee = stack.pop()
            if callee not in reached:
                reached.add(callee)
                stack += [c for c, _ in calls[callee]]
        if name in reached and name not in _LIBRARY_FUNCTIONS:
            problems.add(
                calls[name][0][1], "recursion", f"'{name}' calls itself: Metal 2.3 has no recursion", "warning"
            )
