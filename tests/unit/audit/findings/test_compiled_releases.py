from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict
from mpsmith.audit.findings.compiled.generators import GeneratorRun, compared, generator_runs
from mpsmith.audit.model.group import COMPILED, GroupKey
from mpsmith.audit.model.selection import Settings, Shapes
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.store.store import Store
from mpsmith.errors import MpsmithError
from mpsmith.reports.pages.compiled import generators_document

METAL, ATEN, WRONG, REJECTED = (
    CompiledVerdict.METAL,
    CompiledVerdict.ATEN,
    CompiledVerdict.WRONG,
    CompiledVerdict.REJECTED,
)


def ran(release: str, overlay: bool = True, **verdicts: CompiledVerdict) -> GeneratorRun:
    """An audit of cases "where_0", "where_1": the operator comes first, then the number."""
    return GeneratorRun(release, overlay, verdicts, {label: label.partition("_")[0] for label in verdicts}, "2.13.0")


def test_an_operator_counts_by_its_worst_case() -> None:
    (one,) = compared([ran("2.13.0", where_0=METAL, where_1=WRONG, sum_0=METAL, sort_0=ATEN, sign_0=REJECTED)])
    assert (one.operators, one.lowered, one.right, one.wrong, one.others) == (4, 1, 2, 1, 1)


def test_fixes_and_regressions_are_relative_to_the_previous_release() -> None:
    _, second, third = compared(
        [
            ran("2.10.0", where_0=METAL, cosh_0=REJECTED),
            ran("2.13.0", False, where_0=WRONG, cosh_0=REJECTED),
            ran("2.15.0", where_0=METAL, cosh_0=METAL),
        ]
    )
    assert (second.mended, second.broken) == ((), ("where",))
    assert (third.mended, third.broken) == (("cosh", "where"), ())


def test_only_cases_that_every_audit_executed_are_compared() -> None:
    first, second = compared([ran("2.10.0", where_0=METAL, sum_0=METAL), ran("2.13.0", where_0=METAL, sort_0=WRONG)])
    assert first.operators == second.operators == 1
    assert second.wrong == 0


def test_the_page_names_overlays_and_changes() -> None:
    counts = compared([ran("2.13.0", False, where_0=WRONG, sin_0=METAL), ran("2.15.0", where_0=METAL, sin_0=METAL)])
    page = generators_document(counts).markdown()
    assert "in place of that of the installed torch 2.13.0" in page
    assert "- 2.15.0 (overlay) fixed where" in page
    assert "| `where` | wrong | metal |" in page
    assert "`sin`" not in page


def stored(
    store: Store, codegen: str | None, verdict: CompiledVerdict, finished: bool = True, torch: str = "2.13.0+cpu"
) -> None:
    """One audit of one case under torch.compile."""
    environment = {"torch": torch, "simulated": True} | ({"codegen": codegen} if codegen else {})
    run = store.begin_run(Settings(compiled=Shapes.STATIC, codegen=codegen).recorded(), environment)
    store.plan(run.id, [GroupKey("opinfo", "where", "", "int64", COMPILED)])
    (group,) = store.groups(run.id)
    outcome = Outcome(CaseVerdict.PASSED)
    store.add_compiled(group.id, 0, CompiledOutcome(verdict, outcome))
    store.add_case(group.id, 0, outcome, "")
    if finished:
        store.finish_run(run.id)


def test_the_newest_finished_audit_of_each_generator_is_read_the_oldest_release_first(tmp_path: Path) -> None:
    with Store.create(tmp_path / "audit.sqlite") as store:
        for codegen, verdict, finished in (
            ("2.15.0", WRONG, True),
            ("2.15.0", METAL, True),
            ("2.9.1", WRONG, True),
            (None, REJECTED, True),
            (None, METAL, False),
        ):
            stored(store, codegen, verdict, finished)
        runs = generator_runs(store)
    assert [(run.release, run.overlay, list(run.verdicts.values())) for run in runs] == [
        ("2.9.1", True, [WRONG]),
        ("2.13.0", False, [REJECTED]),
        ("2.15.0", True, [METAL]),
    ]


def test_a_release_itself_stands_beside_its_generator_over_another_one(tmp_path: Path) -> None:
    with Store.create(tmp_path / "audit.sqlite") as store:
        stored(store, "2.15.0", WRONG)
        stored(store, None, METAL, torch="2.15.0+cu130")
        runs = generator_runs(store)
    assert [(run.release, run.overlay, run.base) for run in runs] == [
        ("2.15.0", False, "2.15.0"),
        ("2.15.0", True, "2.13.0"),
    ]


def test_one_audit_has_no_comparison(tmp_path: Path) -> None:
    with Store.create(tmp_path / "audit.sqlite") as store:
        stored(store, None, METAL)
        with pytest.raises(MpsmithError, match="again with --codegen RELEASE"):
            generator_runs(store)
