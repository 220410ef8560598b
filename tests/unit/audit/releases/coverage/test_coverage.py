import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.coverage import OverloadCoverage, ReleaseCoverage, from_data, lacking
from mpsmith.audit.releases.coverage.history import history
from mpsmith.audit.releases.coverage.table import AuditVerdicts, Drift, OperatorSupport, operator_rows, support_of
from mpsmith.audit.releases.data import FailureKey, OverloadHistory, ReleaseData, ReleaseFacts
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.releases.wheel.rebuild import rebuild
from mpsmith.cli import coverage as cli
from mpsmith.errors import MpsmithError
from mpsmith.registry.model import Entry, Measured, Status
from mpsmith.reports.release_coverage import OPERATOR_TITLES, operator_cells, section_of
from support.commands import output

NATIVE, DELEGATE = Dispatch.NATIVE, Dispatch.STRUCTURED_DELEGATE
MISSING, COMPOSITE = Dispatch.MISSING, Dispatch.COMPOSITE_IMPLICIT


def overload(name: str, dispatch: Dispatch, **fields: object) -> OverloadCoverage:
    return OverloadCoverage(name, dispatch, dispatch, "kernel", False, False, **fields)  # type: ignore[arg-type]


def release(
    name: str,
    overloads: dict[str, Dispatch],
    metal: dict[str, tuple[str, ...]] | None = None,
    failures: dict[FailureKey, str] | None = None,
    tested: frozenset[str] = frozenset(),
) -> ReleaseCoverage:
    rows = tuple(overload(name, dispatch) for name, dispatch in overloads.items())
    return ReleaseCoverage(name, "test", rows, None, metal or {}, failures or {}, tested)


def released(names: str, overloads: dict[str, str], **facts: tuple[str, ...]) -> ReleaseData:
    """Data of some releases; the dispatch of an overload is a word for each of them."""
    order = names.split()
    no = (False,) * len(order)
    histories = {
        name: OverloadHistory(
            name, tuple(text.replace("-", " ") for text in states.split()), no, no, ("-",) * len(order)
        )
        for name, states in overloads.items()
    }
    return ReleaseData(tuple(ReleaseFacts(name, "w", **facts) for name in order), histories)  # type: ignore[arg-type]


def test_hand_written_registrations_change_the_dispatch() -> None:
    data = released(
        "1.0.0",
        {"svd": "composite-implicit", "conv": "missing", "and.out": "missing", "abs": "native"},
        always_falls_back=("svd",),
        refuses=("conv",),
        hand_written=("and.out",),
    )
    by_name = from_data(data, 0).by_name
    assert {name: (row.dispatch.value, row.registered, row.rule) for name, row in by_name.items()} == {
        "svd": ("always falls back", "fallback to CPU", "hand-written fallback"),
        "conv": ("missing", "refusal", "hand-written refusal"),
        "and.out": ("native", "kernel", "hand-written kernel"),
        "abs": ("native", "kernel", None),
    }
    assert by_name["svd"].declared is COMPOSITE
    assert "falls back whatever the settings" in by_name["svd"].explanation


def test_gaps_are_those_that_users_reach() -> None:
    rows = [overload("a", MISSING), overload("b", MISSING, unreachable="mkldnn"), overload("c", NATIVE)]
    assert [row.name for row in lacking(rows)] == ["a"]


def test_history_counts_and_names() -> None:
    data = released(
        "1.0.0 1.1.0", {"a.out": "missing native", "a_": "missing native", "b": "native absent", "c": "missing missing"}
    )
    first, second = history(data)
    assert (first.native, first.missing, first.missing_operators) == (1, 3, 2)
    assert (second.native, second.native_operators, second.missing) == (2, 1, 1)
    assert (second.gained, second.lost) == (("a.out", "a_"), ("b",))


def test_history_of_the_committed_data_has_the_known_figures() -> None:
    counts = {count.release: count for count in history(release_data.load())}
    figures = [
        (count.native, count.native_operators, count.missing, count.missing_operators)
        for count in (counts["2.13.0"], counts["2.15.0"])
    ]
    assert figures == [(890, 418, 187, 127), (928, 441, 158, 112)]
    assert counts["2.15.0"].metal_functions == 19455


@pytest.mark.parametrize(
    ("dispatches", "support"),
    [
        ([NATIVE, COMPOSITE], OperatorSupport.NATIVE),
        ([NATIVE, MISSING], OperatorSupport.PARTLY_NATIVE),
        ([MISSING, COMPOSITE], OperatorSupport.MISSING),
        ([Dispatch.ALWAYS_FALLS_BACK, COMPOSITE], OperatorSupport.FALLS_BACK),
        ([COMPOSITE], OperatorSupport.COMPOSITE),
        ([Dispatch.MISSING_EVERYWHERE], OperatorSupport.MISSING_EVERYWHERE),
    ],
)
def test_support_of_an_operator(dispatches: list[Dispatch], support: OperatorSupport) -> None:
    assert support_of([overload(f"f.{number}", dispatch) for number, dispatch in enumerate(dispatches)]) is support


def test_sparse_operators_are_separate() -> None:
    coalesce = OverloadCoverage(
        "_coalesce",
        Dispatch.MISSING_EVERYWHERE,
        Dispatch.MISSING_EVERYWHERE,
        "nothing",
        sparse=True,
        sparse_compressed=False,
    )
    assert support_of([coalesce]) is OperatorSupport.SPARSE_ONLY


def test_the_table_joins_every_source() -> None:
    data = released("1.0.0 1.1.0 1.2.0", {"mode": "native missing native", "sin.out": "missing native native"})
    coverage = release(
        "1.2.0",
        {"mode": NATIVE, "mode.values": COMPOSITE, "sin": DELEGATE, "sin_": DELEGATE, "sin.out": NATIVE},
        {"mode": ("float32", "int8")},
        {FailureKey("mode", "", "unimplemented", "mode"): "int8", FailureKey("mode", "x", "opinfo", "mode"): "all"},
        frozenset({"mode"}),
    )
    measured = Measured(torch="1.2.0", verdict="native")
    entry = Entry(operator="aten::mode", status=Status.native, kernel="mode", measured={"simulated": measured})
    mode, sin = operator_rows(coverage, data, {"aten::mode": entry})
    assert (mode.operator, mode.support, mode.native_since) == ("mode", OperatorSupport.NATIVE, "1.2.0")
    assert (mode.native_overloads, mode.kernel_overloads) == (1, 1)
    assert mode.metal_dtypes == ("float32", "int8")
    assert mode.expected_failures == {"opinfo": ("all",), "unimplemented": ("int8",)}
    assert (mode.verdict, mode.measured_on, mode.status, mode.replacement) == ("native", "simulated", "native", "mode")
    assert mode.grade == "dispatch only"
    assert operator_cells(mode)[OPERATOR_TITLES.index("audit")] == "native (simulated, dispatch only)"
    assert (sin.operator, sin.native_since, sin.native_overloads, sin.verdict) == ("sin", "1.1.0", 3, None)


def test_verdicts_of_an_audit_outrank_recorded_ones() -> None:
    coverage = release("1.0.0", {"put_": NATIVE, "sin": NATIVE})
    measured = Measured(torch="1.0.0", verdict="native")
    entries = {name: Entry(operator=name, measured={"mps": measured}) for name in ("aten::put_", "aten::sin")}
    audit = AuditVerdicts({"aten::put_": "wrong"}, "simulated", {"aten::put_": "shipped kernel"})
    put, sin = operator_rows(coverage, released("1.0.0", {}), entries, audit)
    assert (put.verdict, put.measured_on, put.grade) == ("wrong", "simulated", "shipped kernel")
    assert (sin.verdict, sin.measured_on, sin.grade) == (None, None, None)
    recorded = operator_rows(coverage, released("1.0.0", {}), entries)[0]
    assert (recorded.measured_on, recorded.grade) == ("mps", "real device")
    assert operator_cells(recorded)[OPERATOR_TITLES.index("audit")] == "native (real device)"


@pytest.mark.parametrize(
    ("dispatch", "failures", "drift"),
    [
        (NATIVE, {"unimplemented": "float32,int8"}, (Drift.LISTED_BUT_NATIVE,)),
        (NATIVE, {"unimplemented": "int8"}, ()),
        (NATIVE, {"forward": "float32"}, ()),
        (MISSING, {}, (Drift.MISSING_BUT_NOT_LISTED,)),
        (MISSING, {"unimplemented": "int8"}, ()),
        (MISSING, {"opinfo": "all"}, ()),
        (COMPOSITE, {}, ()),
    ],
)
def test_drift(dispatch: Dispatch, failures: dict[str, str], drift: tuple[Drift, ...]) -> None:
    listed = {FailureKey("f", "", stage, "f"): dtypes for stage, dtypes in failures.items()}
    other = {FailureKey("g", "", "unimplemented", "g"): "float32"}
    coverage = release("1.0.0", {"f": dispatch}, failures=listed | other, tested=frozenset({"f"}))
    (row,) = operator_rows(coverage, released("1.0.0", {}))
    assert row.drift == drift


def test_operators_without_tests_do_not_drift() -> None:
    coverage = release("1.0.0", {"f": MISSING}, failures={FailureKey("g", "", "unimplemented", "g"): "float32"})
    assert operator_rows(coverage, released("1.0.0", {}))[0].drift == ()


app = typer.Typer()
app.command()(cli.coverage)
run = partial(output, app)


def test_a_release_at_a_glance() -> None:
    shown = run("--torch", "2.15.0")
    assert "the binary registers 930 MPS" in shown
    assert "embedding_renorm_: hand-written fallback" in shown


def test_filters() -> None:
    shown = run("--torch", "2.15.0", "--ops", "softshrink", "--ops", "mode")
    assert [line.split()[0] for line in shown.splitlines()[2:]] == [
        "mode",
        "mode.values",
        "softshrink",
        "softshrink.out",
    ]
    assert "cudnn" not in run("--torch", "2.15.0", "--missing")
    with pytest.raises(MpsmithError, match="did you mean softshrink"):
        run("--torch", "2.15.0", "--ops", "sofshrink")


def test_the_operator_table_in_every_form() -> None:
    arguments = ("--operators", "--torch", "2.15.0", "--ops", "softshrink")
    assert "2.2.2" in run(*arguments)
    assert run(*arguments, "--format", "csv").splitlines()[1].startswith("softshrink,native,2 of 2,2.2.2,f32 f16 bf16")
    assert run(*arguments, "--format", "markdown").startswith("| operator")
    (row,) = json.loads(run(*arguments, "--json"))["operators"]
    assert (row["support"], row["native_since"]) == ("native", "2.2.2")


def test_drift_is_a_filter() -> None:
    assert "narrow_copy" in run("--torch", "2.15.0", "--drift")


def test_the_installed_torch_is_the_default() -> None:
    assert "installed torch" in run()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--torch", "newest"), "newest is not a version of torch"),
        (("--torch", "2.15.0", "--wheel", "x.whl"), "name one torch"),
        (("--wheel", "absent.whl"), r"there is no file or folder absent\.whl"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(MpsmithError, match=message):
        run(*arguments)


def test_rebuilding_needs_every_wheel(tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match=r"has no wheel of torch 1\.12\.1"):
        rebuild(["2.99.0"], tmp_path)


def test_the_report_of_an_audit_has_a_section() -> None:
    verdict, grade = SimpleNamespace(value="missing"), SimpleNamespace(value="dispatch only")
    operator = SimpleNamespace(name="aten::mode", verdict=verdict, grade=grade, registered=None)
    run = SimpleNamespace(environment={"profile": "2.0.1"}, simulated=True)
    summary = SimpleNamespace(run=run, surface_release="2.13.0", operators=[operator])
    section = section_of(summary)  # type: ignore[arg-type]
    assert section is not None
    assert section.operators.heading == "Operators in torch 2.0.1"
    mode = next(row for row in section.operators.rows if row[0] == "mode")
    assert "missing (simulated, dispatch only)" in mode
    assert section.simulated
    run.environment["profile"] = "0.1"
    assert section_of(summary) is None  # type: ignore[arg-type]
