"""Rules of Apple's compiler that clang for the host does not check, checked in the tokens of a program.

Each message cites its source: a section of the Metal Shading Language specification ("MSL specification"), or a public
report. `include/msl` has the rules about types, under MSL_APPLE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..clang import Diagnostic
from .attributes import attribute_name, cut_attributes
from .compiler import INCLUDE, MetalVersion
from .declarations import DeclarationWalk, Function, Program
from .problems import Problems
from .tokens import Tokens, UnbalancedError

RULE = "apple"
_REFUSED = re.compile(r"static assertion failed.*?: Metal: (.*)", re.DOTALL)
_RESTRICTED = frozenset(
    [
        *("goto", "virtual", "new", "delete", "thread_local", "register", "dynamic_cast", "typeid"),
        *("try", "catch", "throw", "asm", "__asm__"),
    ]
)
# Types of positions must agree; [[thread_index_in_simdgroup]] and its like are scalars anyway.
_POSITIONS = frozenset(
    [
        *("thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid"),
        *("threads_per_grid", "threads_per_threadgroup", "threadgroups_per_grid", "dispatch_threads_per_threadgroup"),
    ]
)
# Of these, those whose components must have the same type.
_SAME_TYPE = (
    {"thread_position_in_grid", "threads_per_grid"},
    {"thread_position_in_threadgroup", "threads_per_threadgroup", "dispatch_threads_per_threadgroup"},
)
_WIDTHS = frozenset({"thread_execution_width", "threads_per_simdgroup"})
_POSITION_TYPE = re.compile(r"u?(?:int|short)([234])?|uint(?:16|32)_t")
_NO_POSITION_TYPE = re.compile(r"(?:int|short|u?long|u?char|size_t|bool|half|float)[234]?")
# Of a function: Apple's compiler takes the specifier noexcept (MLX's integral_constant.h).
_BEFORE_SPECIFIER = frozenset({")", "const", "volatile", "&", "thread", "threadgroup", "device", "constant"})
_POINTERS = frozenset({"*", "&"})
_128_BITS = frozenset({"__int128", "__int128_t", "__uint128_t"})
_ORDERS = frozenset(f"memory_order_{order}" for order in ("acquire", "release", "acq_rel", "seq_cst"))
_METAL_HEADER = re.compile(rf'^# \d+ "{re.escape(str(INCLUDE))}/(?:metal_\w+|simd/)', re.MULTILINE)
# A `[` after one of these begins a lambda: no expression ends here.
_BEFORE_LAMBDA = frozenset("=(,{;?:&|+-*/<>!") | {"return", "&&", "||", "==", "!="}


def apple_rules(expanded: str, version: MetalVersion) -> Iterator[Diagnostic]:
    """The errors of Apple's compiler for Metal `version` in a preprocessed program."""
    tokens = Tokens.of(expanded)
    try:
        tokens, attributes = cut_attributes(tokens)
    except UnbalancedError:  # clang reports the bracket
        return
    problems = Problems(tokens)
    program = DeclarationWalk(tokens, attributes, drop_duplicates=False).program
    _check_header(tokens, expanded, problems)
    _check_words(tokens, version, problems)
    _check_variables(tokens, program, problems)
    for function in program.functions:
        _check_body(tokens, function, problems)
        if function.is_kernel:
            _check_kernel(tokens, function, problems)
            _check_same_types(tokens, function, problems)
        for attribute in attributes.get(function.body_begin, ()):
            if attribute_name(attribute) != "max_total_threads_per_threadgroup":
                continue  # an unknown one is ignored
            message = f"[[{attribute}]] cannot be applied to types: it belongs before '{function.name}' (clang)"
            problems.add(function.body_begin, RULE, message)
    yield from problems.diagnostics()


def refused_by_header(message: str) -> str:
    """The message of MSL_REFUSE in our headers, from a message of clang; "" for other messages."""
    match = _REFUSED.search(message)
    return match[1] if match else ""


def _check_header(tokens: Tokens, expanded: str, problems: Problems) -> None:
    """Report uses of the namespace `metal` without an include of Apple's headers."""
    if _METAL_HEADER.search(expanded):
        return
    text = tokens.text
    for i, token in enumerate(text):
        if token == "metal" and (text[i - 1] == "namespace" or text[i + 1] == "::"):
            problems.add(i, RULE, "nothing declares the namespace metal: add #include <metal_stdlib>")
            return


def _check_words(tokens: Tokens, version: MetalVersion, problems: Problems) -> None:
    text = tokens.text
    for i, token in enumerate(text):
        if token in _RESTRICTED and not (token == "delete" and text[i - 1] == "=") and text[i - 1] != "operator":
            problems.add(i, RULE, f"Metal has no '{token}' (MSL specification, Restrictions)")
        elif token == "noexcept" and text[i + 1] == "(" and text[i - 1] not in _BEFORE_SPECIFIER:
            problems.add(i, RULE, "Metal has no operator noexcept (MSL specification, Restrictions)")
        elif token in _128_BITS:
            message = "Metal has no integers of 128 bits (MSL specification, Scalar Data Types; Metal.jl issue 287)"
            problems.add(i, RULE, message)
        elif token == "[" and version < "3.2" and text[i - 1] in _BEFORE_LAMBDA and _is_lambda(tokens, i):
            message = f"Metal {version} has no lambda expressions; Metal 3.2 has (MSL specification, Restrictions)"
            problems.add(i, RULE, message)
        elif token in _ORDERS and _callee(tokens, i).startswith("atomic_") and "fence" not in _callee(tokens, i):
            message = (
                f"atomic operations take memory_order_relaxed only, not {token} (MSL specification, Memory Order;"
                " AdaptiveCpp pull request 2248)"
            )
            problems.add(i, RULE, message)


def _callee(tokens: Tokens, i: int) -> str:
    """The function that is called with the token at `i` in an argument."""
    while i > 0 and tokens.text[i] != "(":
        i = tokens.pair[i] - 1 if tokens.text[i] in (")", "]", "}") else i - 1
    return tokens.text[i - 1]


def _is_lambda(tokens: Tokens, i: int) -> bool:
    return tokens.text[tokens.pair[i] + 1] in ("(", "{")


def _check_variables(tokens: Tokens, program: Program, problems: Problems) -> None:
    """Variables at program scope, and static members, are in the constant address space."""
    for begin, end in program.variables:
        words = tokens.text[begin:end]
        if "constant" not in words and "sampler" not in words:
            problems.add(
                begin,
                RULE,
                "a program scope variable must reside in the constant address space: add 'constant'"
                " (MSL specification, Constant Address Space; AdaptiveCpp issue 864)",
            )


def _check_body(tokens: Tokens, function: Function, problems: Problems) -> None:
    """Static variables are in the constant address space; helper functions have no threadgroup variables."""
    text, is_helper = tokens.text, not (function.is_kernel or function.stage)
    for i in range(function.body_begin, function.body_end):
        end = i
        while text[i] in ("static", "threadgroup") and text[end] not in (";", "=", "{", "("):
            end += 1
        words, message = text[i:end] if text[end] != "(" else [], ""
        if text[i] == "static" and words and "constant" not in text[i - 3 : end]:
            message = "a static variable must be in the constant address space (MSL specification, Address Spaces)"
        elif text[i] == "threadgroup" and is_helper and text[i - 1] in ";{}" and words and _POINTERS.isdisjoint(words):
            message = (
                f"'{function.name}' is not a kernel: declare the threadgroup variable in the kernel and pass a pointer"
                " (MSL specification, Threadgroup Address Space; Cerid-AI/quenchforge, roadmap R1)"
            )
        if message:
            problems.add(i, RULE, message)


def _check_kernel(tokens: Tokens, function: Function, problems: Problems) -> None:
    if "void" not in tokens.text[function.head : function.parameters_begin]:
        message = f"kernel '{function.name}' must return void (MSL specification, Kernel Functions)"
        problems.add(function.parameters_begin, RULE, message)
    first: tuple[str, int] | None = None
    widths = [p for p in function.parameters if attribute_name(p.attribute) in _WIDTHS]
    if len({attribute_name(p.attribute) for p in widths}) > 1:
        message = (
            f"kernel '{function.name}' has both [[thread_execution_width]] and [[threads_per_simdgroup]], which are"
            " one attribute (m1-gpu-cpp issue 4)"
        )
        problems.add(widths[-1].end, RULE, message)
    for parameter in function.parameters:
        if attribute_name(parameter.attribute) not in _POSITIONS:
            continue
        wrong = [w for w in tokens.text[parameter.begin : parameter.end] if _NO_POSITION_TYPE.fullmatch(w)]
        if wrong and "unsigned" not in tokens.text[parameter.begin : parameter.end]:
            message = (
                f"kernel '{function.name}': '{parameter.name}' has type '{wrong[0]}'; a position has uint or ushort,"
                " or a vector of them (MSL specification, Kernel Function Input Arguments; slang issue 4288)"
            )
            problems.add(parameter.end, RULE, message)
        types = (_POSITION_TYPE.fullmatch(word) for word in tokens.text[parameter.begin : parameter.end])
        count = next((int(match[1] or 1) for match in types if match), None)
        if count is None:
            continue
        if first is None:
            first = parameter.name, count
        elif first[1] != count:
            problems.add(
                parameter.end,
                RULE,
                f"kernel '{function.name}': '{first[0]}' has {_components(first[1])} and '{parameter.name}' has"
                f" {_components(count)}; positions must be all scalars, or all vectors of one length"
                " (MSL specification, Attributes for Kernel Function Input Arguments)",
            )


def _check_same_types(tokens: Tokens, function: Function, problems: Problems) -> None:
    for names in _SAME_TYPE:
        compared = [p for p in function.parameters if attribute_name(p.attribute) in names]
        types = ["short" if "short" in "".join(tokens.text[p.begin : p.end]) else "int" for p in compared]
        if len(set(types)) > 1:
            message = (
                f"kernel '{function.name}': '{compared[0].name}' and '{compared[-1].name}' must have one type, uint or"
                " ushort (MSL specification, Attributes for Kernel Function Input Arguments)"
            )
            problems.add(compared[-1].end, RULE, message)


def _components(count: int) -> str:
    return f"{count} components" if count > 1 else "1 component"
