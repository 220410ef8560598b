"""The timeline follows Perfetto's documentation of Chrome's trace event format."""

from __future__ import annotations

from pathlib import Path

from mpsmith.tracing import timeline
from mpsmith.tracing.recording import CallKind, CallOperand, CallRow, CallSite, Event, Recording
from support.perfetto_format import strict_events

KINDS = (CallKind.native, CallKind.fallback, CallKind.to_mps, CallKind.from_mps, CallKind.synchronisation)


def recording() -> Recording:
    """Two processes with two threads each, and a call of each kind in each, one after the other."""
    recorded = Recording()
    for process in (4242, 4243):
        recorded.facts[process] = {"simulated": True, "arguments": ["train.py", 'with "quotes" and \n lines']}
        for thread in (1, 2):
            recorded.threads[process, thread] = f"worker {thread}"
            for number, kind in enumerate(KINDS):
                site = CallSite("/a/füße.py", 3, "model.0")
                operands = (CallOperand("float32", (2, 0)), CallOperand("bool", ()))
                recorded.rows.append(
                    CallRow(f"aten::op{number}", kind, False, site, operands, 1, 0, 8, 4, 1000, process)
                )
                start = 10**15 + 3 * number + (thread == 2)
                recorded.events.append(Event(len(recorded.rows) - 1, start, 3, thread))
    return recorded


def test_every_event_is_as_perfetto_documents_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    timeline.write(path, recording())
    slices = strict_events(path.read_text())
    assert len(slices) == 2 * 2 * len(KINDS)
    first = slices[0]
    assert (first["ts"], first["name"], first["cat"]) == (0, "aten::op0", "native")
    assert first["args"] == {
        "where": "/a/füße.py:3",
        "phase": "forward",
        "module": "model.0",
        "dtypes": "float32, bool",
        "shapes": "[2, 0], []",
        "bytes to CPU": 8,
        "bytes to mps": 4,
    }


def test_the_lane_of_mps_is_empty_while_the_cpu_works(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    timeline.write(path, recording())
    slices = [each for each in strict_events(path.read_text()) if (each["pid"], each["tid"] // 4) == (4242, 1)]
    lanes = {each["cat"]: each["tid"] for each in slices}
    assert lanes["native"] != lanes["fallback"] != lanes["copy to mps"] == lanes["copy from mps"]
    (fallback,) = [each for each in slices if each["cat"] == "fallback"]
    start, end = fallback["ts"], fallback["ts"] + fallback["dur"]
    on_mps = [each for each in slices if each["tid"] == lanes["native"]]
    assert on_mps
    assert not [each for each in on_mps if start < each["ts"] + each["dur"] and each["ts"] < end]


def test_a_recording_of_nothing_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    timeline.write(path, Recording())
    assert strict_events(path.read_text()) == []
