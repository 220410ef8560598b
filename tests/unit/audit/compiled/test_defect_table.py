from __future__ import annotations

import ast
from dataclasses import replace

import pytest
import torch

from mpsmith.audit.compiled.defects.defect import Certainty, Defect
from mpsmith.audit.compiled.defects.measurement_file import StoredRelease, StoredResult, joined, read
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.errors import MpsmithError

SHOWN = StoredResult("wrong", "1 of 3 elements differ", "Inductor's Metal", "")

each_defect = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.number)


def test_every_defect_has_its_own_number() -> None:
    assert len({defect.number for defect in DEFECTS}) == len(DEFECTS)
    assert {f"U{number}" for number in range(1, 14)} <= {defect.number for defect in DEFECTS}


def test_defects_are_listed_by_certainty() -> None:
    order = list(Certainty)
    certainties = [order.index(defect.certainty) for defect in DEFECTS]
    assert certainties == sorted(certainties)


@each_defect
def test_a_script_needs_nothing_but_torch(defect: Defect) -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(defect.script()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {"torch"}


# The others call torch.compile themselves.
@pytest.mark.parametrize("defect", [d for d in DEFECTS if not d.compiles_itself], ids=lambda d: d.number)
def test_every_script_runs_on_the_cpu(defect: Defect) -> None:
    program, inputs = defect.program()
    result = program(*[value.clone() for value in inputs])
    assert all(isinstance(output, torch.Tensor) for output in (result if isinstance(result, tuple) else (result,)))


def test_the_table_agrees_with_the_measurements() -> None:
    installed = next(release for release in read() if not release.overlay)
    assert {number: shown.verdict for number, shown in installed.shown.items()} == {
        defect.number: defect.verdict.value for defect in DEFECTS
    }


def test_every_defect_is_measured_in_every_overlay_release() -> None:
    releases = read()
    assert len([release for release in releases if release.overlay]) >= 4
    for release in releases:
        assert release.cannot or set(release.shown) == {defect.number for defect in DEFECTS}


class TestJoined:
    BEFORE = (
        StoredRelease("2.13.0", False, "", {"U1": SHOWN, "U2": SHOWN}),
        StoredRelease("2.15.0", True, "", {"U1": SHOWN, "U2": SHOWN}),
    )

    def test_one_defect_is_measured_anew_and_the_others_stay(self) -> None:
        right = replace(SHOWN, verdict="metal")
        anew = [replace(release, shown={"U2": right}) for release in self.BEFORE]
        assert [release.shown for release in joined(self.BEFORE, anew)] == [{"U1": SHOWN, "U2": right}] * 2

    def test_each_row_has_every_release(self) -> None:
        with pytest.raises(MpsmithError, match=r"--codegen 2\.15\.0"):
            joined(self.BEFORE, self.BEFORE[:1])
