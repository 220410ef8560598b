"""Which known defects audits under torch.compile found, as a page, as data and as the command's exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.audit.compiled.verdicts import Blame, CompiledOutcome, CompiledVerdict
from mpsmith.audit.findings.compiled.defect_matches import NOT_ASKED, FoundByAudits, found_by_audits
from mpsmith.audit.model.group import COMPILED
from mpsmith.audit.model.selection import Settings, Shapes
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.store.store import Store
from mpsmith.cli import app
from mpsmith.errors import MpsmithError
from mpsmith.reports.compiled_found import compiled_found_data, compiled_found_page
from support.stores import opinfo

TITLES = {defect.number: defect.title for defect in DEFECTS}
OUTCOME = Outcome(CaseVerdict.WRONG)
ERFCX = CompiledOutcome(CompiledVerdict.WRONG, OUTCOME, reason="forward: 1 of 9 differ", blame=Blame.INDUCTOR)
NEW = CompiledOutcome(CompiledVerdict.NOT_LOWERED, OUTCOME, reason="NotImplementedError in airy|ai")
run = CliRunner().invoke

Audited = Callable[..., Path]


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    """Makes a store with a finished audit of cases: their operators and what became of them."""

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


def found(*paths: Path, numbers: tuple[str, ...] = ("U7", "U11", "U12")) -> FoundByAudits:
    stores = [Store.open(path) for path in paths]
    try:
        return found_by_audits(stores, numbers)
    finally:
        for store in stores:
            store.close()


def test_a_defect_is_found_explained_or_missed(audited: Audited) -> None:
    page = compiled_found_page(found(audited(special__erfcx=ERFCX, airy=NEW)), TITLES, "2.13.0")
    assert "torch 2.13.0: 2 cases." in page
    assert "1 of 3 defects are found, 1 are out of an audit's reach, 1 are missed." in page
    assert "| `opinfo:special.erfcx:float32:0:compiled` | wrong | 1 | `special.erfcx` |" in page
    assert f"| U12 | {TITLES['U12']} | **none** |" in page
    assert f"- U11: {NOT_ASKED['U11']}." in page


def test_what_is_no_known_defect_comes_after_them(audited: Audited) -> None:
    page = compiled_found_page(found(audited(airy=NEW)), TITLES, "2.13.0")
    assert "| `airy` | not lowered | – | `opinfo:airy:float32:0:compiled` | NotImplementedError in airy\\|ai |" in page


def test_an_audit_that_did_not_end_says_so(audited: Audited) -> None:
    page = compiled_found_page(found(audited(ended=False, special__erfcx=ERFCX)), TITLES, "2.13.0")
    assert "1 cases (1 of 2 groups; the audits did not end)." in page


def test_audits_of_several_stores_count_together(audited: Audited) -> None:
    data = compiled_found_data(found(audited("a", special__erfcx=ERFCX), audited("b", special__log_ndtr=ERFCX)))
    assert (data["cases"], data["defects"][0]["cases"]) == (2, 2)
    assert data["defects"][0]["operators"] == ["special.erfcx", "special.log_ndtr"]
    assert [each["out_of_reach"] for each in data["defects"]] == [False, True, False]


def test_an_audit_with_another_generator_says_nothing_of_the_installed_one(audited: Audited) -> None:
    with pytest.raises(MpsmithError, match=r"no audit under torch\.compile"):
        found(audited(codegen="2.15.0", special__erfcx=ERFCX))


def test_the_command_fails_where_a_defect_is_missed(audited: Audited, tmp_path: Path) -> None:
    page = tmp_path / "found.md"
    ended = run(app, ["compiled", "found", "--store", str(audited(airy=NEW)), "--json", "--markdown", str(page)])
    assert ended.exit_code == 1
    assert len(json.loads(ended.stdout)["defects"]) == len(DEFECTS)
    assert page.read_text("utf-8").count("**none**") == len(DEFECTS) - len(NOT_ASKED)


def test_what_is_out_of_reach_is_a_known_defect() -> None:
    assert set(NOT_ASKED) < set(TITLES)
