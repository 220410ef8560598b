"""Selection of cases: reproducible by seed, filtered by name and dtype, with help for names that are off."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import torch

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.model.case import QUICK_CASES, Case, CaseSource, make_cases, select
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import DTYPES, Samples, Settings
from mpsmith.errors import MpsmithError
from mpsmith.simulator.opening import DeviceKind


def key(operator: str, dtype: str = "float32", variant: str = "") -> GroupKey:
    return GroupKey("opinfo", operator, variant, dtype, "fallback")


GROUPS = [
    key(name, dtype) for name in ("add", "nn.functional.softshrink", "linalg.svd") for dtype in ("float32", "bool")
]


class RandomSource(CaseSource):
    """Draws from every generator that samplers use."""

    name = "opinfo"

    def __init__(self, groups: Sequence[GroupKey] = GROUPS) -> None:
        self._groups = list(groups)

    def groups(self) -> list[GroupKey]:
        return self._groups

    def cases(self, group: GroupKey, samples: Samples) -> Iterator[Case]:
        for _ in range(11):
            yield Case(abs, (torch.rand(2), random.random(), float(numpy.random.rand())))


def selected(ops: Sequence[str], dtypes: Sequence[str] = (), groups: Sequence[GroupKey] = GROUPS) -> list[GroupKey]:
    return select([RandomSource(groups)], ops, dtypes, Samples.DEFAULT)


def inputs(seed: int, group: GroupKey, samples: Samples = Samples.DEFAULT) -> dict[int, str]:
    return {position: str(case.args) for position, case in make_cases(RandomSource(), group, samples, seed).items()}


def test_the_same_seed_gives_the_same_cases() -> None:
    first = inputs(0, GROUPS[0])
    torch.rand(100)
    assert inputs(0, GROUPS[0]) == first
    assert inputs(1, GROUPS[0]) != first
    assert inputs(0, GROUPS[1]) != first


def test_a_quick_case_is_the_default_case_of_its_position() -> None:
    quick, default = inputs(0, GROUPS[0], Samples.QUICK), inputs(0, GROUPS[0])
    assert len(quick) == QUICK_CASES
    assert set(quick) == {0, 4, 7}
    assert quick.items() <= default.items()


def test_the_full_name_of_a_function_finds_it_in_sources_that_name_it_by_its_schema() -> None:
    groups = [*GROUPS, replace(GROUPS[0], source="schema", operator="softshrink")]
    operators = {g.operator for g in selected(["nn.functional.softshrink"], groups=groups)}
    assert operators == {"nn.functional.softshrink", "softshrink"}


@pytest.mark.parametrize("pattern", ["softshrink", "aten::softshrink", "nn.functional.softshrink", "nn.*", "*soft*"])
def test_an_operator_is_found_by_each_of_its_names(pattern: str) -> None:
    assert {g.operator for g in selected([pattern])} == {"nn.functional.softshrink"}


def test_linalg_is_found_by_its_aten_name() -> None:
    assert {g.operator for g in selected(["aten::linalg_svd"], ["float32"])} == {"linalg.svd"}


def test_no_filter_selects_all() -> None:
    assert selected([]) == GROUPS


def test_near_names_are_suggested() -> None:
    with pytest.raises(MpsmithError, match=r"no cases for operator 'sofshrink' \(did you mean softshrink"):
        selected(["add", "sofshrink"])


def test_an_unknown_dtype_lists_the_known_ones() -> None:
    with pytest.raises(MpsmithError, match=r"unknown dtype 'float64' .*bfloat16"):
        selected([], ["float64"])


def test_selecting_nothing_is_an_error() -> None:
    with pytest.raises(MpsmithError, match=r"^nothing to audit: no case of add has int8$"):
        selected(["add"], ["int8"])


@pytest.mark.parametrize("ops", [[], ["add"]])
def test_sources_without_cases_are_an_error_that_says_so(ops: list[str]) -> None:
    with pytest.raises(MpsmithError, match=r"^nothing to audit: the chosen sources have no case here \("):
        selected(ops, groups=[])


def test_opinfo_knows_foreach_and_sparse_forms_of_every_mps_dtype() -> None:
    groups = list(OpInfoSource().groups())
    assert {g.dtype for g in groups} == set(DTYPES)
    names = {(g.operator, g.variant) for g in groups}
    assert {("_foreach_abs", ""), ("_foreach_abs", "/inplace"), ("mul", "/sparse_coo"), ("special.ndtri", "")} <= names
    assert len(groups) == len(set(groups))


def test_a_case_that_asks_for_float64_is_skipped_with_the_reason() -> None:
    cases = make_cases(OpInfoSource(), key("new_empty"), Samples.DEFAULT, 0).values()
    reasons = {case.skipped for case in cases}
    assert reasons == {"", "asks for float64, a dtype that mps refuses by design"}


def test_a_recorded_run_gives_its_settings_back() -> None:
    settings = Settings(
        Samples.FULL,
        7,
        ("add",),
        ("bool",),
        DeviceKind.SIMULATED,
        "2.0.1",
        sources=("opinfo",),
        imports=("torchvision",),
    )
    assert Settings.from_recorded(settings.recorded(), workers=settings.workers) == settings


# ---- sources


class OfferedSource(RandomSource):
    name = "offered"


@pytest.fixture
def offering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Makes a package that offers what is given as its sources."""

    def make(*sources: object) -> str:
        package = ModuleType("offering_package")
        package.mpsmith_case_sources = list(sources)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "offering_package", package)
        return "offering_package"

    return make


def test_a_package_offers_sources(offering: Callable[..., str]) -> None:
    assert isinstance(case_sources((offering(OfferedSource()),))["offered"], OfferedSource)


def test_an_unknown_source_is_an_error(offering: Callable[..., str]) -> None:
    with pytest.raises(MpsmithError, match=r"^--import offering_package: .* holds 'no source', not a mpsmith.audit"):
        case_sources((offering("no source"),))


def test_a_package_that_cannot_be_imported_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MpsmithError, match=r"^--import no_such_package: ModuleNotFoundError: No module named"):
        case_sources(("no_such_package",))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "raises_on_import.py").write_text("raise RuntimeError('not today')\n")
    with pytest.raises(MpsmithError, match=r"^--import raises_on_import: RuntimeError: not today$"):
        case_sources(("raises_on_import",))
