from __future__ import annotations

from mpsmith.audit.self_test.compiled.faults import Found, GeneratorFault
from mpsmith.audit.self_test.compiled.run import TriedFault
from mpsmith.audit.self_test.compiled.table import FAULTS
from mpsmith.cache import PACKAGE
from mpsmith.reports.compiled_faults import compiled_faults_page, mode_of

FAULT = GeneratorFault("a sum starts at 1", "identity of a reduction", "0", "1", ("opinfo:sum:float32",))
WRONG = TriedFault(FAULT, Found("opinfo:sum:float32:3", "wrong", "forward: 1 of 1 elements differ"))
RACE = TriedFault(FAULT, Found("opinfo:any:float32:8", "race", "forward, checked: raises MetalRuntimeError: data race"))
BOUNDS = TriedFault(
    FAULT, Found("opinfo:sum:float32:2", "error", "forward, checked: raises MetalRuntimeError: out of bounds")
)
MISSED = TriedFault(FAULT, None)


def test_the_published_page_has_every_fault_as_found() -> None:
    page = (PACKAGE / "docs" / "compiled_self_test.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [fault.name for fault in FAULTS]
    assert f"{len(FAULTS)} of {len(FAULTS)} faults were found" in page
    assert "**nothing**" not in page


def test_what_only_the_checks_show_is_told_from_what_differs() -> None:
    assert [mode_of(each) for each in (WRONG, RACE, BOUNDS, MISSED)] == ["fast", "checked", "checked", ""]


def test_the_page_counts_and_names_what_was_missed() -> None:
    page = compiled_faults_page([WRONG, RACE, MISSED], "2.13.0")
    assert "2 of 3 faults were found with torch 2.13.0: 1 by values" in page
    assert "| a sum starts at 1 | identity of a reduction | **nothing** |  |  |" in page
    assert "| a sum starts at 1 | identity of a reduction | `opinfo:any:float32:8` | race | checked |" in page
