"""A summary as JSON data."""

from __future__ import annotations

from typing import Any

from .recording import CallKind
from .summary import SiteCalls, Summary, advice, by_call_site, upgrades

# docs/trace.md describes each key; it changes when a key changes its meaning or goes.
VERSION = 1


def to_json(summary: Summary) -> dict[str, Any]:
    """All that was recorded. Times are host nanoseconds."""
    recording = summary.recording
    return {
        "version": VERSION,
        "simulated": recording.fact("simulated"),
        "profile": recording.fact("profile"),
        "torch": recording.fact("torch"),
        "imported_torch": bool(recording.facts),
        "calls": {kind.value: summary.calls(kind) for kind in CallKind},
        "elapsed": summary.elapsed,
        "device_milliseconds": recording.fact("device_milliseconds"),
        "fallbacks": [_call_as_json(at, summary) for at in summary.fallbacks],
        "waits": [_call_as_json(at, summary) for at in summary.waits],
        "copies_to_mps": [_call_as_json(at, summary) for at in summary.copies_to_mps],
        "native": [_call_as_json(at, summary) for at in by_call_site(_rows(summary, CallKind.native))],
        "refused": sorted({row.overload for row in recording.rows if row.refused}),
        "without_a_line": summary.unseen,
        "replaced_by_kernels": list(summary.replaced),
        "without_a_kernel": list(summary.lacking),
        "forbidden": list(summary.forbidden),
        "native_since": {name: release for release, names in upgrades(summary).items() for name in names},
        "advice": advice(summary),
        "dropped": {"calls": recording.dropped_calls},
        "late_variable": recording.fact("late_variable"),
    }


def _rows(summary: Summary, kind: CallKind) -> list[Any]:
    return [row for row in summary.recording.rows if row.kind is kind and row.calls]


def _call_as_json(at: SiteCalls, summary: Summary) -> dict[str, Any]:
    site = at.site
    return {
        "overload": at.overload,
        "kind": at.kind.value,
        "backward": at.backward,
        "file": site.file,
        "line": site.line,
        "module": site.module,
        "library": site.library,
        "note": site.note,
        "calls": at.calls,
        "bytes_to_cpu": at.bytes_to_cpu,
        "bytes_to_mps": at.bytes_to_mps,
        "nanoseconds": at.nanoseconds,
        "share": round(summary.share_of(at), 4),
        "operands": [
            {
                "calls": row.calls,
                "tensors": None
                if row.operands is None
                else [{"dtype": operand.dtype, "shape": list(operand.shape)} for operand in row.operands],
            }
            for row in sorted(at.rows, key=lambda row: -row.calls)
        ],
    }
