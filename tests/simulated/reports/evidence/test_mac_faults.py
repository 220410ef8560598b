"""What a Mac's user sees of a sick GPU: each fault in each command. The results are thrown away.

`ROWS` is the table of docs/evidence.md. Some rows run by default, the others with `-m rehearsal`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.store.store import Store
from mpsmith.registry.files import load
from mpsmith.reports.evidence.checking import checked
from support.mac import PosedMac
from support.posing_as_a_mac.posed_faults import CASE_AT_FAULT, FAULTS

# Of a command that hangs; how long one may compute is limited in seconds of the processor.
pytestmark = pytest.mark.timeout(3 * 3600)
DOCUMENT = Path(__file__).parents[4] / "docs" / "evidence.md"
NARROW = ("--ops", "heaviside", "--dtypes", "float32", "--sources", "opinfo", "--workers", "1")
QUICK = ("--dtypes", "float32", "--samples", "quick", "--workers", "1")
COMMANDS = {
    "preflight": ("preflight",),
    "audit": ("audit", *NARROW),
    "kernels verify": ("kernels", "verify", "heaviside"),
    "evidence collect": ("evidence", "collect", *NARROW),
    "audit of four": ("audit", "--ops", "sin,cos,exp,tanh", *QUICK),
    "audit in 3 s a case": ("audit", "--ops", "sin", *QUICK, "--timeout", "3"),
    "evidence collect of four": ("evidence", "collect", "--ops", "sin,cos,exp,tanh", "--no-kernels", *QUICK),
    "audit of four in 5 s a case": ("audit", "--ops", "sin,cos,exp,tanh", *QUICK, "--timeout", "5"),
    "kernels bench": ("kernels", "bench", "heaviside", "--elements", "1024"),
    "trace": ("trace", "program.py"),
    "replay": ("replay", CASE_AT_FAULT),
}
ALL = ("preflight", "audit", "kernels verify", "kernels bench", "evidence collect")
PROGRAM = 'import torch\nprint(torch.ones(9).to("mps").cpu())\n'
WORKS = "works as without"
JUDGES = "no operator is wrong, crashes or times out"
NEVER_ANSWERS = "does not compute in a new process, time-out (restart the Mac, then continue with --resume"
TIMES_OUT = "one case of cos times out; no other is wrong, crashes or times out"
OOM = "reflight failed at memory: RuntimeError: MPS backend out of memory"
PASSES = "now:      passed"
STOPPED = "now:      crash the device computes nothing afterwards: wrong result of copy"
ABORT = "reflight failed at memory: its process ends with SIGABRT: -[IOGPUMetal"
HANG = "reflight failed at memory: its process does not end within 120 s"


@dataclass(frozen=True)
class Row:
    """A fault, commands that show the same, and what they show: one of the constants, or a part of what is said."""

    fault: str
    commands: tuple[str, ...]
    sees: str
    by_default: str = ""


ROWS = (
    Row("oom", ALL, OOM, by_default="audit"),
    Row("abort", ALL, ABORT, by_default="evidence collect"),
    Row("oom", ("trace",), "RuntimeError: MPS backend out of memory"),
    Row("abort", ("trace",), "the program was ended by SIGABRT; this is what was seen until then"),
    Row("hang", ALL, HANG),
    Row("hang in one case", ("audit of four in 5 s a case",), TIMES_OUT),
    Row("hang after one case", ("audit of four in 5 s a case",), NEVER_ANSWERS),
    Row("virtual", ("evidence collect",), "this Mac is a virtual machine", by_default="evidence collect"),
    Row("ignored", ("audit of four",), JUDGES),
    Row("ignored", ("kernels verify",), "has stopped computing, so its results say nothing about heaviside"),
    Row("ignored at once", ("replay",), STOPPED),
    Row("out-of-bounds write", ("audit of four", "evidence collect of four"), JUDGES),
    Row("out-of-bounds write", ("replay",), PASSES),
    Row("slow first compile", ("preflight", "kernels bench", "trace"), WORKS),
    Row("slow first compile", ("audit in 3 s a case",), JUDGES),
    Row("threads", ("preflight", "kernels bench", "trace"), WORKS),
    Row("threads", ("audit of four", "evidence collect of four"), JUDGES),
)


def cases(by_default: bool) -> list[tuple[str, str, str]]:
    every = [(row, command) for row in ROWS for command in row.commands]
    return [(row.fault, command, row.sees) for row, command in every if (command == row.by_default) == by_default]


def table() -> str:
    rows = [(row.fault, ", ".join(row.commands), row.sees.replace("reflight", "preflight")) for row in ROWS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@pytest.fixture
def mac(tmp_path: Path) -> PosedMac:
    return PosedMac.made(tmp_path)


def check(fault: str, command: str, sees: str, mac: PosedMac) -> None:
    fails = sees not in (WORKS, JUDGES, TIMES_OUT, PASSES, STOPPED)
    (mac.folder / "program.py").write_text(PROGRAM)
    variables = {"POSED_VIRTUAL": "1"} if fault == "virtual" else {"MPSMITH_POSED_FAULT": fault}
    if command == "replay":
        mac.run("mpsmith", *COMMANDS["audit of four"])
    said = mac.run("mpsmith", *COMMANDS[command], fails=fails, **variables)
    assert sees in (WORKS, JUDGES, TIMES_OUT) or sees in said
    if fails:
        assert "aten::heaviside" not in load(mac.folder / "registry")
        assert sees == NEVER_ANSWERS or not list(mac.folder.glob("**/*.sqlite"))
        assert not list(mac.folder.glob("evidence*"))
    if command.startswith("audit") and (not fails or sees == NEVER_ANSWERS):
        with Store.open(mac.folder / "audit.sqlite") as store:
            verdicts = {case.label: case.outcome.verdict for case in store.cases(store.latest_run().id)}
        assert sees != TIMES_OUT or verdicts.pop(CASE_AT_FAULT) is CaseVerdict.TIMEOUT
        check_cases(Counter(verdicts.values()))
    elif command.startswith("evidence") and not fails:
        check_cases(Counter(checked(mac.folder / "evidence.json.gz").audit.cases))


def check_cases(cases: Counter[CaseVerdict]) -> None:
    """Some were executed, and none has a verdict that a sick GPU gives."""
    assert any(verdict.executed for verdict in cases)
    assert not {CaseVerdict.WRONG, CaseVerdict.CRASH, CaseVerdict.TIMEOUT} & set(cases), cases


@pytest.mark.parametrize(("fault", "command", "sees"), cases(by_default=True))
def test_fault_message(fault: str, command: str, sees: str, mac: PosedMac) -> None:
    check(fault, command, sees, mac)


@pytest.mark.rehearsal
@pytest.mark.parametrize(("fault", "command", "sees"), cases(by_default=False))
def test_fault_message_in_a_rehearsal(fault: str, command: str, sees: str, mac: PosedMac) -> None:
    check(fault, command, sees, mac)


def test_the_document_has_the_table() -> None:
    assert table() in DOCUMENT.read_text("utf-8")


def test_each_fault_has_a_row() -> None:
    assert {row.fault for row in ROWS} == {*FAULTS, "virtual"}
