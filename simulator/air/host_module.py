"""A kernel's module made into one for the host: operations defined, an entry point for the scheduler added.

The addresses that AIR keeps apart (device, constant, threadgroup) are all plain memory here: their numbers stay in the
text, and code generators for x86-64 and aarch64 take no notice of them. Variables of the threadgroup go into the
section that the scheduler fills anew for each threadgroup.
"""

from __future__ import annotations

import re

from .entry_point import entry_point
from .errors import MalformedKernelError, UnsupportedKernelError
from .intrinsics import Operation, Perturbation, UnknownOperationError, define
from .llvm_text import leading_type, parenthesised, split_list, symbol
from .signature import KernelSignature

_DECLARATION = re.compile(r'^declare (?P<returns>.*?) ?@"?(?P<name>[\w.$]+)"?(?P<rest>\([^\n]*)$', re.MULTILINE)
_RETURN_ATTRIBUTES = re.compile(r"^(?:(?:noundef|zeroext|signext|fastcc|nofpclass\([^)]*\)|range\([^)]*\)) )+")
_ASSEMBLER = re.compile(r"\bcall [^\n]*\basm (?:sideeffect )?(?:alignstack )?(?:inteldialect )?(?:unwind )?\"")
_THREADGROUP_VARIABLE = re.compile(r"^(@[^\n]*addrspace\(3\) global [^\n]*?)(, align \d+)?$", re.MULTILINE)


def host_module(assembly: str, name: str, signature: KernelSignature, perturbation: Perturbation | None = None) -> str:
    """The assembly of a kernel's module with everything that it needs of Apple's, ready for the host's compiler.

    Under a perturbation, the results of its mathematics are moved within the bounds that Apple gives. Nothing of the
    host is let in: a module that calls other functions, or holds instructions of a processor, is refused.

    Raises:
        MalformedKernelError: the kernel's function is not there, or is not what its signature says.
        UnsupportedKernelError: it needs an operation that the host has no code for.
    """
    if _ASSEMBLER.search(assembly):
        raise UnsupportedKernelError("it holds instructions of a processor, as no kernel of Apple's does")
    parameters = _parameters(assembly, name)
    text, definitions, wanted = _with_operations(assembly, perturbation)
    present = {match["name"] for match in _DECLARATION.finditer(text)}
    entry = entry_point(name, parameters, signature)
    for declaration in sorted(wanted | entry.declarations):
        match = _DECLARATION.match(declaration)
        if match and match["name"] not in present:
            definitions.append(declaration)
    kernel = re.escape(symbol(name))
    head = re.compile(rf"^define (?:weak_odr |dso_local )*([^\n]*{kernel}\()", re.MULTILINE)
    text = head.sub(r"define internal \1", text)
    text = _THREADGROUP_VARIABLE.sub(r'\1, section "msl_shared"\2', text)
    text = text.replace('"frame-pointer"="all"', '"frame-pointer"="none"')
    return "\n".join([text, *definitions, entry.text])


def _parameters(assembly: str, name: str) -> list[str]:
    """The types of the kernel's parameters."""
    head = re.search(rf"^define [^\n]*{re.escape(symbol(name))}(?=\()", assembly, re.MULTILINE)
    if head is None:
        raise MalformedKernelError("its module has no function of its name")
    try:
        return [leading_type(parameter) for parameter in split_list(parenthesised(assembly, head.end()))]
    except ValueError as error:
        raise MalformedKernelError(f"its parameters cannot be read: {error}") from None


def _with_operations(assembly: str, perturbation: Perturbation | None) -> tuple[str, list[str], set[str]]:
    """The text without the declarations of AIR's operations, their definitions, and what those call."""
    definitions: list[str] = []
    wanted: set[str] = set()
    unknown: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        try:
            types = tuple(leading_type(t) for t in split_list(parenthesised(match["rest"], 0)))
            if name.startswith("llvm."):  # what LLVM itself writes code for
                # Without a pointer, as older compilers declared them: no call of these is left.
                return "" if name.startswith("llvm.lifetime.") and types == ("i64",) else match[0]
            returns = leading_type(_RETURN_ATTRIBUTES.sub("", match["returns"]))
            definition = define(Operation(name, returns, types), perturbation)
        except (UnknownOperationError, ValueError):
            unknown.append(name)
            return match[0]
        definitions.append(definition.text)
        wanted.update(definition.declarations)
        return ""

    text = _DECLARATION.sub(replaced, assembly)
    if unknown:
        raise UnsupportedKernelError(f"it needs {', '.join(sorted(unknown))}, which the host has no code for")
    return text, definitions, wanted
