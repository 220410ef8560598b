"""Rewrites Metal source as C++ for the host, or as C++ for OpenCL for the strict pass.

It changes what C++ does not accept:
* float literals without suffix or with `h` and `bf`, and casts between half and bfloat;
* swizzles (`v.xy`), which become calls;
* `threadgroup` variables, which become static objects in their own section;
* `kernel`, which has no meaning in C++, and function constants, which need an initializer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..clang import Diagnostic
from .attributes import cut_attributes
from .compiler import INCLUDE
from .declarations import ADDRESS_SPACES, DeclarationWalk, Program
from .entries import EntryPoint, kernel_entries
from .problems import Problems
from .program_scope import rewrite_program_scope
from .reconvergence import insert_regions
from .recursion import find_recursion
from .shared_variables import rewrite_shared_variables
from .tokens import Tokens, UnbalancedError

Dialect = Literal["host", "strict"]

_COMPONENTS = {name: str(i % 4) for i, name in enumerate("xyzwrgba")}
_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{2,4}")
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_NUMBER_STARTS = frozenset(".0123456789")
_SWIZZLE_STARTS = frozenset("xyzwrgba")
_VECTOR_STARTS = frozenset("bucsilhf")
_UNSUFFIXED_LITERAL = re.compile(r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+")
_SHORT_LITERAL = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(h|H|bf|BF)")
_PLAIN_CAST_TARGETS = frozenset(
    [
        *("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float"),
        *("size_t", "uint32_t", "int32_t"),
    ]
)
_VECTORS = re.compile(r"(?:bool|u?char|u?short|u?int|u?long|half|float|bfloat)([234])")
_UNROLL = re.compile(r"^([ \t]*#[ \t]*pragma[ \t]+)(?:unroll\b.*|clang[ \t]+loop[ \t]+unroll_count\b.*)$", re.MULTILINE)
_FP_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+clang[ \t]+fp\b.*$", re.MULTILINE)
_OPENCL_WORDS = frozenset(
    [
        *("local", "global", "generic", "pipe", "read_only", "write_only", "read_write", "vec_step", "event_t"),
        *("queue_t", "reserve_id_t", "addrspace_cast", "image1d_t", "image2d_t", "image3d_t", "groupshared"),
    ]
)
_OPENCL_TYPES = re.compile(r"(?:atomic_(?:int|uint|long|ulong|bool|float)|memory_order(?:_\w+)?)")


@dataclass(frozen=True)
class Rewritten:
    """C++ text without the kernels' explicit instantiations (`body`) and with them (`full`)."""

    body: str
    full: str
    kernels: tuple[EntryPoint, ...]
    diagnostics: tuple[Diagnostic, ...]


def rewrite(source: str, dialect: Dialect = "host") -> Rewritten:
    """Rewrites preprocessed Metal source."""
    # Unrolling changes no result, and the preprocessor leaves macros in the count.
    tokens = Tokens.of(_UNROLL.sub(r"\1unroll", source))
    try:
        tokens, attributes = cut_attributes(tokens)
    except UnbalancedError:  # clang reports the bracket
        return Rewritten(source, source, (), ())
    problems = Problems(tokens)
    program = DeclarationWalk(tokens, attributes, drop_duplicates=dialect == "host").program
    rewrite_program_scope(tokens, program, problems, real_address_spaces=dialect == "strict")
    _rewrite_words(tokens, program, problems, dialect)
    if dialect == "strict":
        _qualify_member_functions(tokens, program)
    rewrite_shared_variables(tokens, program, real_address_spaces=dialect == "strict")
    find_recursion(tokens, program, problems)
    _remove_fp_pragmas(tokens, program, problems)
    if dialect == "host":
        insert_regions(tokens, program)
    for end in program.function_constants:
        tokens.text[end] = " = {};"
    kernels = list(kernel_entries(tokens, program, problems))
    _note_what_does_not_run(program, kernels, problems)
    full = tokens.join()
    for instantiation in program.instantiations:
        tokens.erase(instantiation.start, instantiation.end + 1)
    return Rewritten(tokens.join(), full, tuple(kernels), tuple(problems.diagnostics()))


def _remove_fp_pragmas(tokens: Tokens, program: Program, problems: Problems) -> None:
    """Remove `#pragma clang fp`: the host never contracts, and code that is added to a block would precede it."""
    for i, space in enumerate(tokens.space):
        if "#" not in space or _FP_PRAGMA.search(space) is None:
            continue
        tokens.space[i] = _FP_PRAGMA.sub("", space)
        if tokens.text[i - 1] != "{" and any(f.body_begin < i <= f.body_end for f in program.functions):
            message = "'#pragma clang fp' can only appear at file scope or at the start of a block"
            problems.add(i, "compile", message)


def _note_what_does_not_run(program: Program, kernels: Sequence[EntryPoint], problems: Problems) -> None:
    """Warn about functions that compile on the host and do not run there."""
    for function in program.functions:
        if function.stage:
            message = f"{function.stage} function '{function.name}': checked, but the simulator runs kernels only"
            problems.add(function.parameters_begin, "not-supported", message, "warning")
    for kernel in kernels:
        if kernel.texture_names:
            message = f"kernel '{kernel.name}': checked, but it does not run: the simulator has no textures"
            problems.add_at(kernel.location, "no-textures", message, "warning")


def _rewrite_words(tokens: Tokens, program: Program, problems: Problems, dialect: Dialect) -> None:
    text = tokens.text
    for i, token in enumerate(text):
        if token in _WORDS:
            _WORDS[token](tokens, i, problems)
        elif token[:1] in _NUMBER_STARTS and len(token) > 1:
            text[i] = _literal(token)
        elif token[:1] in _SWIZZLE_STARTS and text[i - 1] in (".", "->") and _SWIZZLE.fullmatch(token):
            _rewrite_swizzle(text, i, program)
        elif token[:1] in _VECTOR_STARTS and text[i + 2] == "=" and text[i + 3] == "{" and _VECTORS.fullmatch(token):
            _add_missing_elements(tokens, i)
        elif dialect == "strict" and token == "thread" and _names_another_space(text, i):
            text[i] = ""
        elif dialect == "strict" and (token in _OPENCL_WORDS or _OPENCL_TYPES.fullmatch(token)):
            text[i] = f"msl_{token}"


def _qualify_member_functions(tokens: Tokens, program: Program) -> None:
    """Qualify member functions without an address space as `thread` (until Metal 4.0; MLX pull request 3963).

    Only in the program's own classes: ours are already correct, and have all functions that Apple's headers have.
    """
    text = tokens.text
    members = [f for f in program.functions if f.in_class and _has_object(text[f.head : f.parameters_begin])]
    files = tokens.locate([f.parameters_begin for f in members])
    for function in members:
        last = tokens.pair[function.parameters_begin]
        named = not ADDRESS_SPACES.isdisjoint(text[last : function.body_begin])
        if named or files[function.parameters_begin].file.startswith(str(INCLUDE)):
            continue
        while text[last + 1] in ("const", "volatile"):
            last += 1
        text[last] += " thread"


def _has_object(before_parameters: list[str]) -> bool:
    """Whether a function in a class is called for an object: it is not static, no friend and no constructor."""
    words = [word for word in before_parameters if word not in ("", "constexpr", "inline", "explicit")]
    return len(words) > 1 and words[0] != "~" and "static" not in words and "friend" not in words


def _names_another_space(text: list[str], i: int) -> bool:
    """Whether the `thread` at `i` is the variable's space: `thread const device T* p[4]` points to device memory."""
    i += 1
    while text[i] in ("const", "volatile"):
        i += 1
    return text[i] in ("device", "constant", "threadgroup")


def _rewrite_static_cast(tokens: Tokens, i: int, problems: Problems) -> None:
    text = tokens.text
    if text[i + 1] == "<" and text[i + 3] == ">" and text[i + 2] not in _PLAIN_CAST_TARGETS:
        text[i] = "msl_cast"


def _rewrite_kernel(tokens: Tokens, i: int, problems: Problems) -> None:
    tokens.text[i] = "inline"  # so that only the requested kernel is built


def _refuse_double(tokens: Tokens, i: int, problems: Problems) -> None:
    problems.add(i, "no-double", "'double' is not supported in Metal")


def _literal(token: str) -> str:
    """A literal without suffix is float in Metal. Clang's flag for that has no effect in templates."""
    if token[-1] in "hHfF" and (match := _SHORT_LITERAL.fullmatch(token)):
        number = match[1] if re.search(r"[.eE]", match[1]) else match[1] + ".0"
        return f"((half){number}f)" if match[2] in "hH" else f"((bfloat){number}f)"
    return token + "f" if _UNSUFFIXED_LITERAL.fullmatch(token) else token


def _rewrite_swizzle(text: list[str], i: int, program: Program) -> None:
    token = text[i]
    if text[i + 1] == "(" or token in program.swizzle_like_members:
        return
    components = ", ".join(_COMPONENTS[c] for c in token)
    kind = "swizzle_reference" if text[i + 1] in _ASSIGNMENTS else "swizzle"
    text[i] = f"template {kind}<{components}>()"


def _add_missing_elements(tokens: Tokens, i: int) -> None:
    """`uint4 v = {1, 2, 3}`: missing elements are zero."""
    text, pair = tokens.text, tokens.pair
    opening = i + 3
    j, commas = opening + 1, 0
    while j < pair[opening]:
        commas += text[j] == "," and j + 1 < pair[opening]
        j = pair[j] + 1 if text[j] in ("(", "[", "{") else j + 1
    if 0 < commas < int(text[i][-1]) - 1:
        text[opening] = f"metal::msl_filled_up<{text[i]}>("
        text[pair[opening]] = ")"


def _rewrite_short_float_cast(tokens: Tokens, i: int, problems: Problems) -> None:
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


_WORDS: dict[str, Callable[[Tokens, int, Problems], None]] = {
    "half": _rewrite_short_float_cast,
    "bfloat": _rewrite_short_float_cast,
    "static_cast": _rewrite_static_cast,
    "kernel": _rewrite_kernel,
    "double": _refuse_double,
}
