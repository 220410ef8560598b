"""The texts of `mpsmith shipped`: tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from ..audit.wheel.kernel_diff import KernelDiff
from ..audit.wheel.shipped import ShippedLibrary
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


def diff_text(before: ShippedLibrary, after: ShippedLibrary, changes: KernelDiff, *, by_name: bool) -> str:
    """The changes in figures and by family; with `by_name` each kernel that is new, gone or has other code."""
    totals = [(title, f"{len(changes.names(kind)):,}") for kind, title in _KINDS.items()]
    parts = [
        f"from {_title(before)} to {_title(after)}\n",
        tabulate(totals, headers=("kernels", "number"), disable_numparse=True, colalign=("left", "right")) + "\n",
        _names(changes) if by_name else _families(changes),
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


def _dtypes(title: str, by_operator: Mapping[str, Sequence[str]]) -> str:
    rows = [(f"aten::{operator}", ", ".join(dtypes)) for operator, dtypes in by_operator.items()]
    return f"{title}\n\n{tabulate(rows, headers=('operator', 'dtypes'))}\n" if rows else ""
