"""Pages of traced programs, from what `mpsmith trace --json` printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import MpsmithError
from ..table import Cell, Table


class _SiteCalls(BaseModel):
    """Calls of one operator from one line."""

    overload: str
    kind: str = ""
    backward: bool = False
    file: str | None = None
    line: int | None = None
    module: str | None = None
    library: str | None = None
    note: str | None = None
    calls: int = 0
    bytes_to_cpu: int = 0
    bytes_to_mps: int = 0
    nanoseconds: int = 0
    share: float = 0.0
    operands: list[dict[str, Any]] = []


class StoredTrace(BaseModel):
    """The recording of a traced program."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    simulated: bool | None = None
    profile: str | None = None
    torch: str | None = None
    calls: dict[str, int]
    elapsed: int | float | None = None
    fallbacks: list[_SiteCalls]
    waits: list[_SiteCalls]
    replaced_by_kernels: list[str] = []
    without_a_kernel: list[str] = []
    advice: str | None = None
    with_kernels: StoredTrace | None = None


def read_trace(path: Path) -> StoredTrace:
    """The trace in a file that `mpsmith trace --json` printed. Raises MpsmithError for anything else."""
    try:
        return StoredTrace.model_validate_json(path.read_bytes()).model_copy(update={"name": path.stem})
    except OSError as error:
        raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        site = ".".join(map(str, first["loc"])) or "the document"
        raise MpsmithError(
            f"{path} is not a trace: {site}: {first['msg']} (write one with `mpsmith trace PROGRAM --json > {path}`)"
        ) from None


def trace_lead(trace: StoredTrace) -> list[str]:
    """The sentences at the top of the page."""
    total = sum(trace.calls.values())
    counted = ", ".join(f"{number:,} {kind}" for kind, number in trace.calls.items() if number)
    lines = [f"{total:,} calls on mps: {counted or 'none'}. Torch {trace.torch or 'unknown'}."]
    if trace.simulated:
        lines.append(
            f"The device was SIMULATED with the coverage of torch {trace.profile}: calls and bytes are exact, times "
            "are this machine's and no GPU's."
        )
    if trace.advice:
        lines.append(trace.advice)
    if trace.with_kernels is not None:
        before, after = (sum(at.calls for at in each.fallbacks) for each in (trace, trace.with_kernels))
        lines.append(f"{before:,} of these calls ran on the CPU; with `import mpsmith.kernels` {after:,}.")
    return lines


def trace_tables(trace: StoredTrace) -> list[Table]:
    """The calls that ran on the CPU, and the other waits for the GPU."""
    root = _root([*trace.fallbacks, *trace.waits])
    found = [_table("Ran on the CPU", trace.fallbacks, root, "Copies wait for the GPU, and the GPU waits for the CPU.")]
    if trace.with_kernels is not None:
        note = "What is left after `import mpsmith.kernels`."
        found.append(_table("Ran on the CPU with mpsmith.kernels", trace.with_kernels.fallbacks, root, note))
    note = "Reading a value back empties the GPU's queue."
    found.append(_table("Where else the host waits for the GPU", trace.waits, root, note))
    return [table for table in found if table.rows]


def _root(calls: Sequence[_SiteCalls]) -> str:
    """The common folder of all files, which is not shown."""
    folders = {Path(at.file).parent for at in calls if at.file and Path(at.file).is_absolute()}
    return f"{os.path.commonpath(folders)}{os.sep}" if folders else ""


def _table(heading: str, calls: Sequence[_SiteCalls], root: str, note: str) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            at.overload,
            at.calls,
            _where(at, root),
            at.module or "",
            f"{at.nanoseconds / 1e6:.2f}",
            f"{at.share:.1%}",
            at.bytes_to_cpu,
            at.bytes_to_mps,
            "; ".join(filter(None, map(_operands, at.operands[:3]))),
        )
        for at in calls
    ]
    columns = ("operator", "calls", "where", "module", "ms", "share", "bytes to CPU", "bytes back", "operands")
    return Table(heading, columns, tuple(rows), note, frozenset({"operator", "operands"}))


def _where(at: _SiteCalls, root: str) -> str:
    site = f"{at.file.removeprefix(root)}:{at.line}" if at.file else at.library or at.note or "unknown"
    return f"{site} (backward)" if at.backward else site


def _operands(group: dict[str, Any]) -> str:
    tensors = group.get("tensors") or []
    return ", ".join(f"{tensor.get('dtype', '')}{list(tensor.get('shape', []))}" for tensor in tensors)
