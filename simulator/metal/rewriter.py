"""Turns tokens of Metal source into C++ for the host (or C++ for OpenCL, for the strict pass).

What is changed, and why C++ cannot take it as it is:
* float literals with the suffixes `h` and `bf`, and casts between half and bfloat;
* swizzles (`v.xy`), which become calls;
* `threadgroup` variables, which become static objects in a section of their own;
* `kernel`, which has no meaning, and function constants, which need an initialiser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .attributes import BUILTINS, Attributes, attribute_argument, attribute_name, cut_attributes
from .declarations import DeclarationWalk, Function, Instantiation, Parameter, Program, buffer_index
from .diagnostics import Diagnostic
from .limits import MAX_BUFFERS
from .tokens import Location, Tokens, UnbalancedError

Dialect = Literal["host", "strict"]

_COMPONENTS = {name: str(i % 4) for i, name in enumerate("xyzwrgba")}
_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{2,4}")
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_SHORT_FLOATS = frozenset({"half", "bfloat"})
_SHORT_LITERAL = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(h|H|bf|BF)")
_PLAIN_CAST_TARGETS = frozenset("bool char uchar short ushort int uint long ulong float size_t uint32_t int32_t".split())
_TEXTURES = re.compile(r"(?:texture(?:1d|2d|3d|cube)\w*|depth(?:2d|cube)\w*|texture_buffer|sampler)")
_OPENCL_WORDS = frozenset(
    """
    local global generic pipe read_only write_only read_write vec_step event_t queue_t reserve_id_t addrspace_cast
    image1d_t image2d_t image3d_t groupshared
    """.split()
)
_OPENCL_TYPES = re.compile(r"(?:atomic_(?:int|uint|long|ulong|bool|float)|memory_order(?:_\w+)?)")


@dataclass(frozen=True)
class KernelArgument:
    """How a kernel parameter gets its value: `kind` is "buffer", "threadgroup" or "builtin"."""

    kind: Literal["buffer", "threadgroup", "builtin"]
    index: int  # of the buffer; -1 for a builtin
    builtin: str
    name: str


@dataclass(frozen=True)
class KernelEntry:
    """A kernel that can be asked for by name."""

    name: str
    function: str
    signature: str | None
    arguments: tuple[KernelArgument, ...]
    location: Location


@dataclass(frozen=True)
class Rewritten:
    """C++ text without the kernels' explicit instantiations (`body`) and with them (`full`)."""

    body: str
    full: str
    kernels: tuple[KernelEntry, ...]
    diagnostics: tuple[Diagnostic, ...]


def rewrite(source: str, dialect: Dialect = "host") -> Rewritten:
    """Rewrites preprocessed Metal source."""
    tokens = Tokens.of(source)
    try:
        tokens, attributes = cut_attributes(tokens)
    except UnbalancedError:  # clang names the bracket
        return Rewritten(source, source, (), ())
    problems = _Problems(tokens)
    program = DeclarationWalk(tokens, attributes, drop_duplicates=dialect == "host").program
    _rewrite_words(tokens, program, problems, dialect)
    if dialect == "host":
        _rewrite_threadgroup_variables(tokens, program)
        _find_recursion(tokens, program, problems)
    for end in program.function_constants:
        tokens.text[end] = " = {};"
    kernels = list(_kernels(tokens, program, attributes, problems))
    full = tokens.join()
    for instantiation in program.instantiations:
        tokens.erase(instantiation.start, instantiation.end + 1)
    return Rewritten(tokens.join(), full, tuple(kernels), tuple(problems.found()))


class _Problems:
    """Diagnostics by token; they are located all at once, when there are any."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._noted: list[tuple[int, str, str]] = []

    def add(self, token: int, rule: str, message: str) -> None:
        self._noted.append((token, rule, message))

    def found(self) -> Iterator[Diagnostic]:
        places = self._tokens.locate([token for token, _, _ in self._noted])
        for token, rule, message in self._noted:
            yield Diagnostic(places[token].file, places[token].line, 0, "error", message, rule)


# ---------------------------------------------------------------------------------------------- words
def _rewrite_words(tokens: Tokens, program: Program, problems: _Problems, dialect: Dialect) -> None:
    text = tokens.text
    for i, token in enumerate(text):
        if not token:
            continue
        first = token[0]
        if first in "xyzwrgba":
            if _SWIZZLE.fullmatch(token) and text[i - 1] in (".", "->"):
                _rewrite_swizzle(text, i, program)
        elif first.isdigit() or (first == "." and len(token) > 1 and token[1].isdigit()):
            if token[-1] in "hHfF" and (match := _SHORT_LITERAL.fullmatch(token)):
                number = match[1] if re.search(r"[.eE]", match[1]) else match[1] + ".0"
                text[i] = f"((half){number}f)" if match[2] in "hH" else f"((bfloat){number}f)"
        if token in _SHORT_FLOATS:
            _rewrite_short_float_cast(tokens, i)
        elif token == "static_cast":
            if text[i + 1] == "<" and text[i + 3] == ">" and text[i + 2] not in _PLAIN_CAST_TARGETS:
                text[i] = "msl_cast"
        elif token == "kernel":
            text[i] = "inline"  # so that only the kernel asked for is built
        elif token == "double":
            problems.add(i, "no-double", "'double' is not supported in Metal")
        elif first in "tds" and _TEXTURES.fullmatch(token) and text[i - 1] not in (".", "->"):
            if text[i + 1] == "<" or token == "sampler":
                problems.add(i, "no-textures", f"'{token}': the simulator has no textures, only buffers")
        elif dialect == "strict" and (token in _OPENCL_WORDS or _OPENCL_TYPES.fullmatch(token)):
            text[i] = f"msl_{token}"


def _rewrite_swizzle(text: list[str], i: int, program: Program) -> None:
    token = text[i]
    if text[i + 1] == "(" or token in program.swizzle_like_members:
        return
    components = ", ".join(_COMPONENTS[c] for c in token)
    kind = "swizzle_reference" if text[i + 1] in _ASSIGNMENTS else "swizzle"
    text[i] = f"template {kind}<{components}>()"


def _rewrite_short_float_cast(tokens: Tokens, i: int) -> None:
    """`half(x)` and `(half)x`: clang refuses to cast between half and bfloat."""
    text = tokens.text
    before, after = text[i - 1], text[i + 1]
    if after == "(" and before not in ("operator", ".", "->"):
        if text[i + 2] not in ("*", "&", "device", "constant", "thread", "threadgroup", ")"):
            text[i] = f"msl_cast<{text[i]}>"
        return
    if before == "(" and after == ")":
        outer, operand = text[i - 2], text[i + 2]
        is_operand = operand[:1].isalnum() or operand[:1] in "_(-!~+*&."
        after_value = outer in (")", ">", "]") or (outer.isidentifier() and outer != "return")
        if is_operand and not after_value:
            text[i - 1], text[i], text[i + 1] = "", f"msl_c_cast<{text[i]}>()->*", ""


# ---------------------------------------------------------------------------------------------- threadgroup variables
def _rewrite_threadgroup_variables(tokens: Tokens, program: Program) -> None:
    text = tokens.text
    places = [i for i, token in enumerate(text) if token == "threadgroup"]
    if not places:
        return
    for function in program.functions:
        for i in places:
            if function.body_begin < i < function.body_end and _starts_statement(tokens, i):
                names = list(_variable_names(tokens, i))
                if names:
                    text[i] = "MSL_SHARED"
                    end = _end_of_statement(tokens, i)
                    text[end] = ";" + "".join(f" MSL_SHARED_END({name});" for name in names)


def _starts_statement(tokens: Tokens, i: int) -> bool:
    text = tokens.text
    i -= 1
    while i >= 0:
        if text[i] == ")" and text[tokens.pair[i] - 1] == "alignas":
            i = tokens.pair[i] - 2
        elif text[i] in ("const", "constexpr", "volatile", "static", ""):
            i -= 1
        else:
            break
    return text[i] in ("{", "}", ";")


def _end_of_statement(tokens: Tokens, i: int) -> int:
    while tokens.text[i] != ";":
        i = tokens.pair[i] + 1 if tokens.text[i] in ("(", "[", "{") else i + 1
    return i


def _variable_names(tokens: Tokens, i: int) -> Iterator[str]:
    """Names that the statement at `i` declares; nothing if it declares a pointer or a reference."""
    text, pair = tokens.text, tokens.pair
    last_word = ""
    names: list[str] = []
    i += 1
    while True:
        token = text[i]
        if token in ("*", "&"):
            return
        if token == "<":
            i = tokens.close_angle(i) or i
        elif token in ("[", "{", "("):
            i = pair[i]
        elif token == "=":
            while text[i + 1] not in (",", ";"):
                i = pair[i + 1] if text[i + 1] in ("(", "[", "{") else i + 1
        elif token in (",", ";"):
            names.append(last_word)
            if token == ";":
                break
        elif token.isidentifier():
            last_word = token
        i += 1
    yield from names


# ---------------------------------------------------------------------------------------------- recursion
def _find_recursion(tokens: Tokens, program: Program, problems: _Problems) -> None:
    """Metal has no recursion. Calls are matched by name, so overloaded and template functions are left alone."""
    text = tokens.text
    counts: dict[str, int] = {}
    for function in program.functions:
        counts[function.name] = counts.get(function.name, 0) + 1
    plain = {f.name: f for f in program.functions if not f.is_template and not f.in_class and counts[f.name] == 1}
    calls: dict[str, list[tuple[str, int]]] = {
        name: [
            (text[i], i)
            for i in range(f.body_begin, f.body_end)
            if text[i] in plain and text[i + 1] == "(" and text[i - 1] not in (".", "->", "::")
        ]
        for name, f in plain.items()
    }
    for name in plain:
        # An overload of a library function may call the library's: `float exp(float2 v) { return exp(v.x); }`.
        reached: set[str] = set()
        stack = [callee for callee, _ in calls[name]]
        while stack:
            callee = stack.pop()
            if callee not in reached:
                reached.add(callee)
                stack += [c for c, _ in calls[callee]]
        if name in reached and name not in _LIBRARY_FUNCTIONS:
            problems.add(
                calls[name][0][1], "no-recursion", f"'{name}' calls itself: Metal does not support recursion"
            )


_LIBRARY_FUNCTIONS = frozenset(
    """
    abs acos acosh all any asin asinh atan atan2 atanh ceil clamp copysign cos cosh cross distance dot exp exp10 exp2
    fabs floor fma fmax fmin fmod fract isfinite isinf isnan ldexp length log log10 log2 max min mix normalize pow
    powr rint round rsqrt saturate select sign sin sincos sinh sqrt step tan tanh trunc
    """.split()
)


# ---------------------------------------------------------------------------------------------- kernels
def _kernels(
    tokens: Tokens, program: Program, attributes: Attributes, problems: _Problems
) -> Iterator[KernelEntry]:
    by_name: dict[str, list[Function]] = {}
    for function in program.functions:
        if function.is_kernel:
            by_name.setdefault(function.name, []).append(function)
    starts = [f.parameters_begin for f in program.functions if f.is_kernel]
    places = tokens.locate(starts + [i.start for i in program.instantiations])
    for function in program.functions:
        if function.is_kernel and not function.is_template:
            arguments = tuple(_arguments(function.parameters, function.name, problems))
            yield KernelEntry(
                function.host_name or function.name,
                f"{function.scope}{function.name}",
                None,
                arguments,
                places[function.parameters_begin],
            )
    for instantiation in program.instantiations:
        template = _template_of(instantiation, by_name.get(instantiation.base, []))
        if template is None:
            continue  # clang says what is wrong with the statement
        name = instantiation.host_name or instantiation.base
        arguments = tuple(_arguments(template.parameters, name, problems))
        yield KernelEntry(
            name, instantiation.function, instantiation.signature, arguments, places[instantiation.start]
        )


def _template_of(instantiation: Instantiation, candidates: list[Function]) -> Function | None:
    same_scope = [f for f in candidates if f.scope == instantiation.scope] or candidates
    if instantiation.parameters is not None and len(same_scope) > 1:
        count = len(instantiation.parameters)
        same_scope = [f for f in same_scope if len(f.parameters) == count] or same_scope
    return same_scope[0] if same_scope else None


def _arguments(parameters: tuple[Parameter, ...], kernel: str, problems: _Problems) -> Iterator[KernelArgument]:
    """Binds parameters: what has no attribute takes the next free buffer index."""
    taken = {index for p in parameters if (index := buffer_index(p)) is not None}
    next_free = 0
    for parameter in parameters:
        attribute = attribute_name(parameter.attribute)
        place = parameter.end
        if attribute in BUILTINS:
            yield KernelArgument("builtin", -1, attribute, parameter.name)
            continue
        if attribute == "threadgroup":
            argument = attribute_argument(parameter.attribute)
            yield KernelArgument("threadgroup", int(argument) if argument.isdigit() else 0, "", parameter.name)
            continue
        if attribute == "buffer":
            explicit = buffer_index(parameter)
            if explicit is None:
                problems.add(
                    place,
                    "bad-attribute",
                    f"[[{parameter.attribute}]] on parameter '{parameter.name}' of kernel '{kernel}' "
                    "needs a number as index",
                )
                continue
            index = explicit
        elif attribute == "":
            while next_free in taken:
                next_free += 1
            index = next_free
            taken.add(index)
        else:
            problems.add(
                place,
                "bad-attribute",
                f"unknown attribute [[{parameter.attribute}]] on parameter '{parameter.name}' of kernel '{kernel}'",
            )
            continue
        if index >= MAX_BUFFERS:
            problems.add(
                place,
                "too-many-buffers",
                f"kernel '{kernel}' binds '{parameter.name}' to buffer {index}: "
                f"Metal has buffers 0 to {MAX_BUFFERS - 1}",
            )
        yield KernelArgument("buffer", index, "", parameter.name)
