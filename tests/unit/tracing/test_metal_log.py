"""What torch logs of a real mps device, from lines as its sources format them: no Mac has written these."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mpsmith.tracing import text
from mpsmith.tracing.metal_log import OPTIONS, LoggedWork, Work, merged, parse


@pytest.mark.parametrize(
    ("line", "logged"),
    [
        (
            "aten::softmax_mps_out:MPS:Float[3, 4]:1 (id=G2, run=7, gpu=0.324 ms, cpu=0.036 ms)",
            LoggedWork(Work.graph, "softmax_mps_out", 1, 0.324, 0.036),
        ),
        (
            "aten::fmod_dense_float_float:MPS(buf#3:1):Float[3]:MPS:Float[3] (id=K1, run=1, gpu=1.000 ms)\n",
            LoggedWork(Work.kernel, "fmod_dense_float_float", 1, 1.0),
        ),
        ("aten::cat (id=K12, run=3)", LoggedWork(Work.kernel, "cat")),
        (
            "CPU Fallback::aten::mode:MPS:Float[3] (id=1, run=2, CopyOverhead=12 bytes, cpu=2.500 ms)",
            LoggedWork(Work.fallback, "aten::mode", 1, 0.0, 2.5, 12),
        ),
        (
            "BlitCopySync: MPS:Float[3] --> CPU:Float[3] (len=1.50 KB, gpu=0.010 ms)",
            LoggedWork(Work.copy, "MPS to CPU", 1, 0.01, 0.0, 1536),
        ),
        ("MemCopy: CPU:0x1234 --> MPS:0x5678 (len=8 bytes)", LoggedWork(Work.copy, "CPU to MPS", 1, length=8)),
    ],
)
def test_a_line_of_torch_is_read(line: str, logged: LoggedWork) -> None:
    assert parse(line) == logged


@pytest.mark.parametrize("line", ["", "loss 0.3", "aten::mm is slow", "UserWarning: aten::mode (id=K1, run=1)"])
def test_a_line_of_the_program_is_its_own(line: str) -> None:
    assert parse(line) is None


def test_the_lines_of_one_operation_are_put_together() -> None:
    lines = [
        "aten::mm:MPS:Float[3] (id=K1, run=1, gpu=0.500 ms)",
        "aten::cat (id=G1, run=1, gpu=0.200 ms)",
        "aten::mm:MPS:Float[9] (id=K1, run=2, gpu=0.250 ms, cpu=0.100 ms)",
    ]
    work = merged([logged for line in lines if (logged := parse(line))])
    assert work == [LoggedWork(Work.kernel, "mm", 2, 0.75, 0.1), LoggedWork(Work.graph, "cat", 1, 0.2)]
    console = Console(file=io.StringIO(), width=120)
    text.show_metal_log(work, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "mm" in shown
    assert "0.750" in shown


def test_log_options_select_operations_copies_fallbacks_and_times() -> None:
    assert OPTIONS == 0b110000111
