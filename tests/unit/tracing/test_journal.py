"""The journal outlives its process, stays bounded, and says what it dropped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mpsmith.tracing.journal import OVERFLOW, Journal, read_folder
from mpsmith.tracing.recording import CallKind, CallOperand, CallSite

PLACE = CallSite("train.py", 12, "model.3")

WRITES_AND_IS_KILLED = """
import os, signal, sys
from pathlib import Path
from mpsmith.tracing.journal import Journal
from mpsmith.tracing.recording import CallKind, CallSite

journal = Journal(Path(sys.argv[1]))
journal.add_facts({"simulated": True})
journal.name_thread(1, "MainThread")
row = journal.new_row("aten::mode", CallKind.fallback, True, CallSite("train.py", 12, "model.3"), [("float32", [2, 3])])
for call in range(3):
    journal.count(row, 5, 24, 16)
    journal.add_event(row, 100 * call, 5, 1)
journal._file.write(b'{"row": 2, "overl')
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_reads_the_journal_of_a_killed_process(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITES_AND_IS_KILLED, str(tmp_path)], check=False)
    recording = read_folder(tmp_path)
    (row,) = recording.rows
    assert (row.overload, row.kind, row.backward, row.site) == ("aten::mode", CallKind.fallback, True, PLACE)
    assert row.operands == (CallOperand("float32", (2, 3)),)
    assert (row.calls, row.nanoseconds, row.bytes_to_cpu, row.bytes_to_mps) == (3, 15, 72, 48)
    assert [event.start for event in recording.events] == [0, 100, 200]
    assert recording.fact("simulated") is True
    assert set(recording.threads.values()) == {"MainThread"}


def test_a_full_journal_says_what_it_dropped() -> None:
    journal = Journal(rows=3, events=2)
    rows = [journal.new_row(f"aten::op{number}", CallKind.native, False, PLACE, None) for number in range(4)]
    assert rows == [1, 2, OVERFLOW, OVERFLOW]
    for row in rows:
        journal.count(row, 1, 0, 0)
        journal.add_event(row, 0, 1, 1)
    recording = journal.recording()
    assert [row.calls for row in recording.rows] == [1, 1]
    assert (recording.dropped_calls, recording.dropped_events, len(recording.events)) == (2, 2, 2)


def test_several_processes_keep_their_own_rows(tmp_path: Path) -> None:
    for number in (1, 2):
        journal = Journal(tmp_path, rows=4, events=4)
        row = journal.new_row(f"aten::op{number}", CallKind.native, False, PLACE, None)
        journal.count(row, 1, 0, 0)
        journal.add_event(row, number, 1, 1)
    recording = read_folder(tmp_path)
    named = {(recording.rows[event.row].overload, event.start) for event in recording.events}
    assert named == {("aten::op1", 1), ("aten::op2", 2)}
