"""The texts of `mpsmith shipped`: tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from ..audit.releases.wheel.kernel_arguments import ArgumentsDiff, access_of, members, signature_of
from ..audit.releases.wheel.kernel_diff import KernelDiff
from ..audit.releases.wheel.kernel_families import KernelFamilies
from ..audit.releases.wheel.shipped import ShippedLibrary
from ..audit.shipped.finding_result import FindingResult
from .printing import counted

_KINDS = {"came": "new", "went": "gone", "changed": "other code", "same": "the same"}


def library_table(library: ShippedLibrary) -> str:
    """The libraries of a binary; of those that were not read the size alone."""
    header, functions = library.file.header, library.file.functions
    air = ", ".join(sorted({str(function.air) for function in functions}))
    metal = ", ".join(sorted({str(function.metal) for function in functions}))
    read = (len(functions), str(header.macos), air, metal)
    rows = [
        (name, f"{size:,}", *(read if name == library.section else ("", "", "", "")))
        for name, size in library.sections.items()
    ]
    headers = ("library", "bytes", "kernels", "macOS", "AIR", "Metal")
    hints = ["`mpsmith shipped list 'hypot_*'` lists kernels by name, `--ops hypot` those of an operator"]
    others = [name for name in library.sections if name != library.section]
    if others:
        hints.append(f"`--library {others[0]}` reads the other library")
    table = tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", *5 * ("right",)))
    return f"{library.source}\n\n{table}\n\n{'; '.join(hints)}\n"


def kernel_table(library: ShippedLibrary, names: Sequence[str]) -> str:
    """A line for each of these kernels."""
    functions = [library.file.function(name) for name in names]
    rows = [(each.name, f"{each.size:,}", each.sha256[:16], str(each.air), str(each.metal)) for each in functions]
    headers = ("kernel", "bytes", "SHA-256 begins", "AIR", "Metal")
    table = tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", "right", "left", "left", "left"))
    of = f"of {len(library.file.names):,} in {library.section} of {library.source}"
    return f"{table}\n\n{counted(len(names), 'kernel')} {of}\n"


def signature_text(library: ShippedLibrary, name: str, families: KernelFamilies) -> str:
    """One kernel: where it is from, and its arguments by index with the members of structs."""
    function, signature = library.file.function(name), signature_of(library.file, name)
    family = families.family(name)
    operators = ", ".join(f"aten::{operator}" for operator in families.operators_of(family))
    facts = [
        ("from", f"{library.source}, {library.section}"),
        ("family", f"{family} ({operators})" if operators else family),
        ("code", f"{function.size:,} bytes, AIR {function.air}, Metal {function.metal}"),
        ("SHA-256", function.sha256),
        ("threadgroup", f"at most {signature.max_threads} threads" if signature.max_threads else "of any size"),
        ("subnormals", "count as zero" if signature.flush_denormals else "are kept"),
    ]
    rows: list[tuple[object, ...]] = []
    for buffer in signature.buffers:
        rows.append((buffer.index, buffer.name, buffer.type_name, "", buffer.size or "", access_of(buffer)))
        rows.extend(("", *member, "") for member in members(buffer.fields, buffer.name))
    for buffer in signature.threadgroup_buffers:
        rows.append((buffer.index, buffer.name, buffer.type_name, "", buffer.size or "", "memory of the threadgroup"))
    rows.extend(("", each.name, each.type_name, "", "", each.kind) for each in signature.builtins)
    headers = ("index", "argument", "type", "at", "bytes", "access, or what the GPU passes")
    table = tabulate(rows, headers=headers, disable_numparse=True)
    return f"{name}\n\n{tabulate(facts, tablefmt='plain')}\n\n{table}\n"


def diff_text(
    before: ShippedLibrary,
    after: ShippedLibrary,
    changes: KernelDiff,
    arguments: Sequence[ArgumentsDiff] | None,
    *,
    by_name: bool,
) -> str:
    """The changes in figures and by family; with `by_name` each kernel that is new, gone or has other code."""
    totals = [(title, f"{len(changes.names(kind)):,}") for kind, title in _KINDS.items()]
    parts = [
        f"from {_title(before)} to {_title(after)}\n",
        tabulate(totals, headers=("kernels", "number"), disable_numparse=True, colalign=("left", "right")) + "\n",
        _names(changes) if by_name else _families(changes),
        "" if arguments is None else _arguments(arguments, len(changes.names("changed"))),
        _dtypes("dtypes that operators gained, by the names of their kernels", changes.dtypes_came),
        _dtypes("dtypes that operators lost, by the names of their kernels", changes.dtypes_went),
    ]
    return "\n".join(part for part in parts if part)


def _title(library: ShippedLibrary) -> str:
    return f"{library.source}, {library.section} ({len(library.file.names):,} kernels)"


def _families(changes: KernelDiff) -> str:
    rows = [
        (each.family, *(len(kernels) or "" for kernels in (each.came, each.went, each.changed, each.same)))
        for each in changes.families
        if each.came or each.went or each.changed
    ]
    if not rows:
        return ""
    return tabulate(rows, headers=("family", *_KINDS.values())) + "\n"


def _names(changes: KernelDiff) -> str:
    rows = [(name, title) for kind, title in _KINDS.items() if kind != "same" for name in changes.names(kind)]
    return tabulate(rows, headers=("kernel", "is")) + "\n" if rows else ""


def _arguments(found: Sequence[ArgumentsDiff], compared: int) -> str:
    changed = sum(len(each.kernels) for each in found)
    parts = [f"other arguments: {changed:,} of {counted(compared, 'kernel')} with other code\n"]
    for each in found:
        more = f" and {len(each.kernels) - 1} like it" if len(each.kernels) > 1 else ""
        lines = [*(f"  - {line}" for line in each.went), *(f"  + {line}" for line in each.came)]
        parts.append("\n".join([f"{each.kernels[0]}{more}", *lines]) + "\n")
    return "\n".join(parts)


def _dtypes(title: str, by_operator: Mapping[str, Sequence[str]]) -> str:
    rows = [(f"aten::{operator}", ", ".join(dtypes)) for operator, dtypes in by_operator.items()]
    return f"{title}\n\n{tabulate(rows, headers=('operator', 'dtypes'))}\n" if rows else ""


def found_line(result: FindingResult) -> str:
    """The result of one finding, in a line."""
    if result.is_right:
        return f"right      {result.name}"
    if not result.is_wrong:
        return f"not tried  {result.name}: {'; '.join(result.stood_in) or result.message or result.verdict.value}"
    place = result.place
    values = f"{place.given}, CPU {place.expected}" if place else result.message
    ulp_sensitivity = f" [{result.ulp_sensitivity.value}]" if result.ulp_sensitivity else ""
    return f"WRONG      {result.name}: {values}{ulp_sensitivity} ({', '.join(result.kernels)})"
