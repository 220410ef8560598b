"""Adds MPS rows to native_functions.yaml and leaves all other lines unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import ScaffoldError

_ENTRY = re.compile(r"^- func: (?P<name>[\w.]+)\(", re.MULTILINE)
_ROW = re.compile(r"^    (?P<keys>[A-Z]\w*(?:, *[A-Z]\w*)*): (?P<kernel>\S+)(?P<rest>.*)$")


def entry_of(text: str, overload: str) -> tuple[int, int]:
    """The start and the end of an overload's entry in the text. Raises ScaffoldError when there is none."""
    start: int | None = None
    for entry in _ENTRY.finditer(text):
        if start is not None:
            return start, entry.start()
        if entry["name"] == overload:
            start = entry.start()
    if start is None:
        raise ScaffoldError(f"native_functions.yaml has no entry for {overload}")
    return start, len(text)


def entries_of(text: str, overloads: list[str]) -> str:
    """The entries of these overloads."""
    return "".join(text[slice(*entry_of(text, name))] for name in overloads)


def rows_by_overload(text: str, overloads: list[str]) -> dict[str, dict[str, str]]:
    """The kernel of each dispatch key in the entries of some overloads."""
    return {overload: _rows_of(text[slice(*entry_of(text, overload))]) for overload in overloads}


def _rows_of(entry: str) -> dict[str, str]:
    rows = (_ROW.match(line) for line in entry.splitlines())
    return {key.strip(): row["kernel"] for row in rows if row for key in row["keys"].split(",")}


def mps_kernels(rows: Mapping[str, Mapping[str, str]], *, shared: bool) -> dict[str, str]:
    """The name of each overload's kernel on mps: the CPU's if backends share one, else a separate one."""
    kernels = {}
    for overload, by_key in rows.items():
        identifier = overload.replace(".", "_")
        taken = f"{identifier}_mps" in by_key.values()
        own = f"{identifier}_metal" if taken else f"{identifier}_mps"
        kernels[overload] = by_key["CPU"] if shared and "CPU" in by_key else own
    return kernels


def with_mps_rows(text: str, kernels: Mapping[str, str]) -> str:
    """The yaml with `MPS: kernel` for each overload. If a row has the kernel already, MPS is added to its keys.

    Raises ScaffoldError for an overload without an entry or without a dispatch section.
    """
    for overload, kernel in kernels.items():
        start, end = entry_of(text, overload)
        text = text[:start] + _with_row(text[start:end], overload, kernel) + text[end:]
    return text


def _with_row(entry: str, overload: str, kernel: str) -> str:
    lines = entry.splitlines(keepends=True)
    if not any(line.strip() == "dispatch:" for line in lines):
        raise ScaffoldError(f"{overload} has no dispatch section in native_functions.yaml: it is composed of others")
    kept: list[str] = []
    added = False
    last_row = 0
    for line in lines:
        row = _ROW.match(line.rstrip("\n"))
        if row is None:
            kept.append(line)
            continue
        keys = [key.strip() for key in row["keys"].split(",")]
        without = [key for key in keys if key != "MPS"]
        if row["kernel"] == kernel and not added:
            keys, added = [*without, "MPS"], True
        else:
            keys = without
        if keys:
            kept.append(f"    {', '.join(keys)}: {row['kernel']}{row['rest']}\n")
            last_row = len(kept)
    if not added:
        kept.insert(last_row, f"    MPS: {kernel}\n")
    return "".join(kept)
