"""Turns the module of a kernel into one for the host: defines operations, adds an entry point for the scheduler.

AIR's address spaces (device, constant, threadgroup) are plain memory here. Their numbers stay in the text, because code
generators for x86-64 and aarch64 ignore them. Threadgroup variables go into the section that the scheduler resets for
each threadgroup.
"""

from __future__ import annotations

import itertools
import re

from ..errors import MalformedKernelError, UnsupportedKernelError
from .entry_point import entry_point
from .intrinsics import PLAIN, Operation, UnknownOperationError, Variant, define
from .llvm_text import leading_type, parenthesized, split_list, symbol
from .signature import KernelSignature

DECLARATION = re.compile(r'^declare (?P<returns>.*?) ?@"?(?P<name>[\w.$]+)"?(?P<rest>\([^\n]*)$', re.MULTILINE)
_RETURN_ATTRIBUTES = re.compile(r"^(?:(?:noundef|zeroext|signext|fastcc|nofpclass\([^)]*\)|range\([^)]*\)) )+")
ASSEMBLER = re.compile(r"\bcall [^\n]*\basm (?:sideeffect )?(?:alignstack )?(?:inteldialect )?(?:unwind )?\"")
_VARIABLE_TYPE = re.compile(
    r"^@(?P<name>[^ ]+) = [^\n]*addrspace\(3\) global (?P<type>.+?) (?:undef|poison|zeroinitializer)", re.MULTILINE
)
_THREADGROUP_VARIABLE = re.compile(r"^(@[^\n]*addrspace\(3\) global [^\n]*?)(, align \d+)?$", re.MULTILINE)


def host_module(assembly: str, name: str, signature: KernelSignature, variant: Variant = PLAIN) -> str:
    """The assembly of a kernel's module with Apple's operations, ready for the host's compiler.

    A module that calls other functions, or contains inline assembly, is refused.

    Raises:
        MalformedKernelError: the kernel's function is missing, or does not match its signature.
        UnsupportedKernelError: it uses an operation that the host does not implement.
    """
    if ASSEMBLER.search(assembly):
        raise UnsupportedKernelError("it contains inline assembly, which Apple's kernels never do")
    parameters = parameter_types(assembly, name)
    text, definitions, wanted = with_operations(assembly, variant)
    present = {match["name"] for match in DECLARATION.finditer(text)}
    entry = entry_point(name, parameters, signature)
    for declaration in sorted(wanted | entry.declarations):
        match = DECLARATION.match(declaration)
        if match and match["name"] not in present:
            definitions.append(declaration)
    kernel = re.escape(symbol(name))
    head = re.compile(rf"^define (?:weak_odr |dso_local )*([^\n]*{kernel}\()", re.MULTILINE)
    text = head.sub(r"define internal \1", text)
    if variant.checked:
        definitions += _variable_table(text)
    if "@air.atomic." in assembly:
        definitions.append('@air_atomic_note = hidden constant i8 0, section "msl_atomic_note"')
    text = _shared(text, variant)
    text = text.replace('"frame-pointer"="all"', '"frame-pointer"="none"')
    module = "\n".join([text, *definitions, entry.text])
    return _in_one_address_space(module) if variant.checked else module


def _in_one_address_space(module: str) -> str:
    """All pointers in one address space, which the hooks of the checker require."""
    module = re.sub(r" addrspace\([123]\)", "", module)
    module = re.sub(r"(@llvm\.(?:memcpy|memmove|memset))((?:\.p[0-3])+)", _in_space_0, module)
    declared: set[str] = set()

    def once(match: re.Match[str]) -> str:
        if match["name"] in declared:
            return ""
        declared.add(match["name"])
        return match[0]

    return DECLARATION.sub(once, module)


def _in_space_0(match: re.Match[str]) -> str:
    return match[1] + re.sub(r"[1-3]", "0", match[2])


def _shared(text: str, variant: Variant) -> str:
    """Put threadgroup variables into the scheduler's section; for the checker, with a gap after each."""
    numbers = itertools.count()

    def placed(match: re.Match[str]) -> str:
        variable = f'{match[1]}, section "msl_shared"{match[2] or ""}'
        if not variant.checked:
            return variable
        return f'{variable}\n@air_gap_{next(numbers)} = hidden global [64 x i8] undef, section "msl_shared"'

    return _THREADGROUP_VARIABLE.sub(placed, text)


def _variable_table(text: str) -> list[str]:
    """A table of the threadgroup variables for messages: struct SharedVariable of runtime.h."""
    rows = []
    for number, match in enumerate(_VARIABLE_TYPE.finditer(text)):
        name = re.sub(r".*E\d*(?=[a-z_])", "", match["name"]).strip('"')  # the last part of a mangled name
        size = f"ptrtoint (ptr getelementptr ({match['type']}, ptr null, i32 1) to i64)"
        rows += [
            f'@air_name_{number} = hidden constant [{len(name) + 1} x i8] c"{name}\\00"',
            f"@air_variable_{number} = hidden constant {{ ptr, i64, ptr }} {{ ptr @{match['name']}, i64 {size}, "
            f'ptr @air_name_{number} }}, section "msl_variables", align 8',
        ]
    return rows


def parameter_types(assembly: str, name: str) -> list[str]:
    """The types of the kernel's parameters. Raises MalformedKernelError if they are missing."""
    head = re.search(rf"^define [^\n]*{re.escape(symbol(name))}(?=\()", assembly, re.MULTILINE)
    if head is None:
        raise MalformedKernelError("its module has no function of its name")
    try:
        return [leading_type(parameter) for parameter in split_list(parenthesized(assembly, head.end()))]
    except ValueError as error:
        raise MalformedKernelError(f"its parameters cannot be read: {error}") from None


def with_operations(assembly: str, variant: Variant) -> tuple[str, list[str], set[str]]:
    """The text without the declarations of AIR's operations, their definitions, and what those call.

    Raises UnsupportedKernelError for operations that nothing here defines.
    """
    definitions: list[str] = []
    wanted: set[str] = set()
    unknown: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        try:
            types = tuple(leading_type(t) for t in split_list(parenthesized(match["rest"], 0)))
            if name.startswith("llvm."):  # LLVM's intrinsics
                # Old forms without a pointer, which are not called.
                return "" if name.startswith("llvm.lifetime.") and types == ("i64",) else match[0]
            returns = leading_type(_RETURN_ATTRIBUTES.sub("", match["returns"]))
            definition = define(Operation(name, returns, types), variant)
        except (UnknownOperationError, ValueError):
            unknown.append(name)
            return match[0]
        definitions.append(definition.text)
        wanted.update(definition.declarations)
        return ""

    text = DECLARATION.sub(replaced, assembly)
    if unknown:
        raise UnsupportedKernelError(f"it needs {', '.join(sorted(unknown))}, which the host does not support")
    return text, definitions, wanted
