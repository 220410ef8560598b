"""The generated pages: the registry, the published files, and what the pages about torch.compile say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpsmith.audit.compiled.defects.measurement_file import StoredRelease, StoredResult
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict, FaultyStage
from mpsmith.audit.findings.compiled.defect_matches import NOT_ASKED, found_by_audits
from mpsmith.audit.model.group import COMPILED
from mpsmith.audit.model.selection import Settings, Shapes
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.self_test.compiled.faults import Found, GeneratorFault
from mpsmith.audit.self_test.compiled.run import TriedFault
from mpsmith.audit.self_test.compiled.table import FAULTS
from mpsmith.audit.store.store import Store
from mpsmith.cache import PACKAGE
from mpsmith.errors import MpsmithError
from mpsmith.reports.pages import PAGES, PageInputs
from mpsmith.reports.pages.compiled import faults_document, found_document, mode_of
from mpsmith.reports.pages.compiled_defects import MOST_LINES, defects_document
from support.stores import opinfo

PUBLISHED = PACKAGE / "reports" / "published"

WRONG = StoredResult("wrong", "forward: 1 of 3 elements differ", "Inductor's Metal", "kernel void k() {\n}\n")
RIGHT = StoredResult("metal", "", "", "")

FAULT = GeneratorFault("a sum starts at 1", "identity of a reduction", "0", "1", ("opinfo:sum:float32",))
DIFFERS = TriedFault(FAULT, Found("opinfo:sum:float32:3", "wrong", "forward: 1 of 1 elements differ"))
RACES = TriedFault(FAULT, Found("opinfo:any:float32:8", "race", "forward, checked: raises: data race"))
OUT_OF_BOUNDS = TriedFault(FAULT, Found("opinfo:sum:float32:2", "error", "forward, checked: raises: out of bounds"))
MISSED = TriedFault(FAULT, None)

TITLES = {defect.number: defect.title for defect in DEFECTS}
ERFCX = CompiledOutcome(
    CompiledVerdict.WRONG,
    Outcome(CaseVerdict.WRONG),
    reason="forward: 1 of 9 differ",
    faulty_stage=FaultyStage.INDUCTOR,
)
AIRY = CompiledOutcome(CompiledVerdict.NOT_LOWERED, Outcome(CaseVerdict.WRONG), reason="NotImplementedError in airy|ai")

Audited = Callable[..., Path]


def test_each_published_page_is_in_the_registry() -> None:
    assert {path.stem for path in PUBLISHED.glob("*.md")} - {"coverage"} <= set(PAGES)


@pytest.mark.parametrize("name", ["releases", "compiled_defects"])
def test_a_page_made_from_the_packages_data_is_up_to_date(name: str) -> None:
    assert (PUBLISHED / f"{name}.md").read_text("utf-8") == PAGES[name].markdown(PageInputs())


@pytest.mark.parametrize("name", ["kernel_backlog", "networks", "kernel_references"])
def test_a_page_without_its_inputs_is_an_error(name: str) -> None:
    assert not PAGES[name].can_be_made(PageInputs())
    with pytest.raises(MpsmithError, match=f"page {name} needs"):
        PAGES[name].markdown(PageInputs())


def measured(name: str, overlay: bool, *wrong: str, cannot: str = "") -> StoredRelease:
    shown = {} if cannot else {each.number: WRONG if each.number in wrong else RIGHT for each in DEFECTS}
    return StoredRelease(name, overlay, cannot, shown)


def test_the_defects_over_the_releases() -> None:
    releases = [
        measured("2.12.1", True, "U3"),
        measured("2.13.0", False, "U2"),
        measured("2.15.0", True, "U2"),
        measured("2.99.0", True, cannot="it needs a module that is not there"),
    ]
    page = defects_document(DEFECTS, releases).markdown()
    assert "- 2.13.0 fixed U3 and broke U2 (compared with 2.12.1)." in page
    assert "(compared with 2.13.0)" not in page
    assert "| U2 | – | wrong | wrong |" in page
    assert "| | 2.12.1 | 2.13.0 (installed) | 2.15.0 |" in page
    assert "torch 2.99.0: it needs a module that is not there" in page


def test_a_long_kernel_is_cut_in_the_middle() -> None:
    lines = "\n".join(f"line {number};" for number in range(100))
    shown = {each.number: RIGHT for each in DEFECTS} | {"U2": StoredResult("wrong", "", "", lines)}
    page = defects_document(DEFECTS, [StoredRelease("2.13.0", False, "", shown)]).markdown()
    assert "line 0;" in page
    assert "line 99;" in page
    assert f"// ... {100 - MOST_LINES + 1} lines" in page
    assert "line 60;" not in page


def test_the_published_page_has_every_fault_as_found() -> None:
    page = (PUBLISHED / "compiled_recall.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [fault.name for fault in FAULTS]
    assert "**nothing**" not in page


def test_the_faults_in_the_code_generator() -> None:
    assert [mode_of(each) for each in (DIFFERS, RACES, OUT_OF_BOUNDS, MISSED)] == ["fast", "checked", "checked", ""]
    page = faults_document([DIFFERS, RACES, MISSED], "2.13.0").markdown()
    assert "2 of 3 faults were found with torch 2.13.0: 1 by different values" in page
    assert "| a sum starts at 1 | identity of a reduction | | NOT FOUND | |" in page
    assert "| a sum starts at 1 | identity of a reduction | `opinfo:any:float32:8` | race | checked |" in page


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    """Makes a store with an audit under torch.compile of the operators given with their outcomes."""

    def made(name: str = "audit", codegen: str | None = None, ended: bool = True, **outcomes: CompiledOutcome) -> Path:
        path = tmp_path / f"{name}.sqlite"
        with Store.create(path) as store:
            environment = {"torch": "2.13.0+cpu", "simulated": True} | ({"codegen": codegen} if codegen else {})
            begun = store.begin_run(Settings(compiled=Shapes.STATIC, codegen=codegen).recorded(), environment)
            keys = {opinfo(operator.replace("__", "."), mode=COMPILED): found for operator, found in outcomes.items()}
            store.plan(begun.id, keys)
            for group in store.groups(begun.id):
                store.add_compiled(group.id, 0, keys[group.key])
                store.add_case(group.id, 0, keys[group.key].outcome, "")
                store.mark_done(group.id)
            if ended:
                store.finish_run(begun.id)
            else:
                store.plan(begun.id, [opinfo("add", mode=COMPILED)])
        return path

    return made


def found_page(*paths: Path) -> str:
    stores = [Store.open(path) for path in paths]
    try:
        return found_document(found_by_audits(stores, ("U7", "U11", "U12")), TITLES, "2.13.0").markdown()
    finally:
        for store in stores:
            store.close()


def test_a_defect_is_found_out_of_reach_or_missed(audited: Audited) -> None:
    page = found_page(audited(special__erfcx=ERFCX, airy=AIRY))
    assert "torch 2.13.0: 2 cases." in page
    assert "1 of 3 defects are found, 1 are out of an audit's reach, 1 are missed." in page
    assert "| `opinfo:special.erfcx:float32:0:compiled` | wrong | 1 | special.erfcx |" in page
    assert f"| U12 | {TITLES['U12']} | | MISSED |" in page
    assert "Out of reach, U11: " in page
    assert "| `airy` | not lowered | | `opinfo:airy:float32:0:compiled` | NotImplementedError in airy\\|ai |" in page


def test_an_unfinished_audit_is_marked(audited: Audited) -> None:
    assert "1 cases (1 of 2 groups; the audits did not end)." in found_page(audited(ended=False, special__erfcx=ERFCX))


def test_audits_of_several_stores_count_together(audited: Audited) -> None:
    page = found_page(audited("a", special__erfcx=ERFCX), audited("b", special__log_ndtr=ERFCX))
    assert "| wrong | 2 | special.erfcx, special.log\\_ndtr |" in page


def test_rejects_an_audit_with_another_code_generator(audited: Audited) -> None:
    with pytest.raises(MpsmithError, match=r"no audit under torch\.compile"):
        found_page(audited(codegen="2.15.0", special__erfcx=ERFCX))


def test_only_known_defects_are_out_of_reach() -> None:
    assert set(NOT_ASKED) < set(TITLES)
