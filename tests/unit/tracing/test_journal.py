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
row = journal.new_row("aten::mode", CallKind.fallback, True, CallSite("train.py", 12, "model.3"), [("float32", [2, 3])])
for call in range(3):
    journal.count(row, 100 + 100 * call, 5, 24, 16)
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
    assert recording.span == (100, 305)
    assert recording.fact("simulated") is True


def test_a_full_journal_counts_dropped_calls() -> None:
    journal = Journal(rows=3)
    rows = [journal.new_row(f"aten::op{number}", CallKind.native, False, PLACE, None) for number in range(4)]
    assert rows == [1, 2, OVERFLOW, OVERFLOW]
    for row in rows:
        journal.count(row, 1, 1, 0, 0)
    recording = journal.recording()
    assert [row.calls for row in recording.rows] == [1, 1]
    assert recording.dropped_calls == 2


def test_several_processes_keep_their_own_rows(tmp_path: Path) -> None:
    for number in (1, 2):
        journal = Journal(tmp_path, rows=4)
        row = journal.new_row(f"aten::op{number}", CallKind.native, False, PLACE, None)
        journal.count(row, 10 * number, 1, 0, 0)
    recording = read_folder(tmp_path)
    assert {row.overload for row in recording.rows} == {"aten::op1", "aten::op2"}
    assert recording.span == (10, 21)
