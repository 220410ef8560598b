"""The recording as a timeline for ui.perfetto.dev, in Chrome's trace event format.

Each thread has four lanes: work on mps, copies, CPU fallbacks, and synchronisations. While something is on the CPU,
the lane of mps is empty: that gap is what a fallback costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .recording import CallKind, CallRow, Recording
from .text import shown_file

LANES = ("mps work, as issued by the host", "copies", "CPU fallbacks", "synchronisations")
LANE = {CallKind.native: 0, CallKind.to_mps: 1, CallKind.from_mps: 1, CallKind.fallback: 2, CallKind.synchronisation: 3}


def write(path: Path, recording: Recording) -> None:
    """Write the file, for "Open trace file" in ui.perfetto.dev or chrome://tracing. Raises OSError."""
    marks = {"simulated": recording.fact("simulated"), "dropped_events": recording.dropped_events}
    text = json.dumps({"traceEvents": list(events(recording)), "otherData": marks}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8", errors="replace")  # Perfetto shows an escaped character as its escape


def events(recording: Recording) -> Iterator[dict[str, Any]]:
    """The names of processes and lanes, then the calls; times in microseconds from the first call."""
    simulated = " (SIMULATED mps device)" if recording.fact("simulated") else ""
    for process, facts in recording.facts.items():
        program = " ".join(facts.get("arguments", []))
        yield _name("process_name", process, 0, f"{program}{simulated}")
    lanes = sorted({(recording.rows[event.row].process, event.thread) for event in recording.events})
    for process, thread in lanes:
        suffix = f" of {recording.threads.get((process, thread), thread)}" if len(lanes) > 1 else ""
        for lane, name in enumerate(LANES):
            yield _name("thread_name", process, _lane(thread, lane), name + suffix)
            order = {"sort_index": _lane(thread, lane)}
            yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": _lane(thread, lane), "args": order}
    origin = min((event.start for event in recording.events), default=0)
    for event in recording.events:
        row = recording.rows[event.row]
        yield {
            "ph": "X",
            "name": row.overload,
            "cat": row.kind.value,
            "pid": row.process,
            "tid": _lane(event.thread, LANE[row.kind]),
            "ts": (event.start - origin) / 1000,
            "dur": event.duration / 1000,
            "args": _arguments(row),
        }


def _arguments(row: CallRow) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "where": shown_file(str(row.site)),
        "phase": "backward" if row.backward else "forward",
    }
    if row.site.module:
        arguments["module"] = row.site.module
    if row.operands:
        arguments["dtypes"] = ", ".join(operand.dtype for operand in row.operands)
        arguments["shapes"] = ", ".join(str(list(operand.shape)) for operand in row.operands)
    if row.bytes_to_cpu:
        arguments["bytes to CPU"] = row.bytes_to_cpu // row.calls
    if row.bytes_to_mps:
        arguments["bytes to mps"] = row.bytes_to_mps // row.calls
    return arguments


def _lane(thread: int, lane: int) -> int:
    return thread * len(LANES) + lane


def _name(kind: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": lane, "args": {"name": name}}
