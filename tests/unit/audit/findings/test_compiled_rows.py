"""Runs under torch.compile in the results store, and their summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict, FaultyStage
from mpsmith.audit.findings.compiled.summary import CompiledSummary, operator_of, summarize_compiled
from mpsmith.audit.model.group import COMPILED, DYNAMIC, GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.store.connection import StoreError
from mpsmith.audit.store.store import Store
from support.stores import begun, new_store, opinfo

RIGHT, WRONG_VALUE = Outcome(CaseVerdict.PASSED), Outcome(CaseVerdict.WRONG, message="1 of 2 elements differ")
METAL = CompiledOutcome(CompiledVerdict.METAL, RIGHT, kernels=2, graphs=1, source="kernel void f() {}")
WRONG = CompiledOutcome(
    CompiledVerdict.WRONG,
    WRONG_VALUE,
    aten=("aten::mm",),
    kernels=1,
    graphs=2,
    breaks=("a data-dependent branch",),
    recompilations=3,
    reason="forward: 1 of 2 elements differ",
    faulty_stage=FaultyStage.INDUCTOR,
    source="kernel void g() {}",
)


def stored(folder: Path, *cases: tuple[GroupKey, CompiledOutcome]) -> Store:
    """A store with one run under torch.compile."""
    store = new_store(folder)
    recording = begun(store, {"compiled": "both"})
    for key, compiled in cases:
        recording.add(key, compiled.outcome)
        (group,) = (group.id for group in store.groups(recording.run.id) if group.key == key)
        store.add_compiled(group, len(store.positions(group)) - 1, compiled)
    recording.finish()
    return store


def summarized(folder: Path, *cases: tuple[GroupKey, CompiledOutcome]) -> CompiledSummary:
    with stored(folder, *cases) as store:
        return summarize_compiled(store, store.latest_run(compiled=True))


class TestCompiledRows:
    def test_a_case_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        with stored(tmp_path, (opinfo("add", mode=COMPILED), WRONG)) as store:
            (case,) = store.compiled_cases(store.latest_run(compiled=True).id)
        assert case.compiled == WRONG
        assert case.label == "opinfo:add:float32:0:compiled"

    def test_the_source_of_right_results_is_not_kept(self, tmp_path: Path) -> None:
        with stored(tmp_path, (opinfo("add", mode=COMPILED), METAL)) as store:
            (case,) = store.compiled_cases(1)
        assert (case.compiled.verdict, case.compiled.kernels, case.compiled.source) == (CompiledVerdict.METAL, 2, "")

    def test_a_crashed_case_keeps_the_message_of_the_parent(self, tmp_path: Path) -> None:
        with new_store(tmp_path) as store:
            recording = begun(store, {"compiled": "static"})
            recording.add(opinfo("add", mode=COMPILED), Outcome(CaseVerdict.CRASH, message="SIGSEGV"))
            (case,) = store.compiled_cases(recording.finish().id)
        assert (case.compiled.verdict, case.compiled.reason) == (CompiledVerdict.CRASH, "SIGSEGV")

    def test_the_lanes_do_not_hide_each_other(self, tmp_path: Path) -> None:
        with stored(tmp_path, (opinfo("add", mode=COMPILED), METAL)) as store:
            with pytest.raises(StoreError, match=r"holds no audit yet \(run `mpsmith audit --store"):
                store.latest_run()
            eager = begun(store).finish()
            assert store.latest_run() == eager
            assert store.latest_run(compiled=True).id != eager.id
            newest = store.newest_run()
            assert newest is not None
            assert newest.id == eager.id

    def test_a_label_names_its_lane(self, tmp_path: Path) -> None:
        with stored(tmp_path, (opinfo("add", mode=DYNAMIC), METAL), (opinfo("add", mode=COMPILED), WRONG)) as store:
            assert store.named_case("opinfo:add:float32:0:dynamic")[1].group.mode == DYNAMIC
            assert store.named_case("opinfo:add:float32:0:compiled")[1].group.mode == COMPILED


class TestSummarizeCompiled:
    def test_the_worst_case_is_the_operators_verdict(self, tmp_path: Path) -> None:
        summary = summarized(
            tmp_path,
            (opinfo("add", "float32", COMPILED), METAL),
            (opinfo("add", "int64", COMPILED), WRONG),
            (opinfo("mul", "int64", COMPILED), METAL),
        )
        add, mul = summary.operators
        assert (add.verdict, add.aten, add.breaks, add.recompilations) == (CompiledVerdict.WRONG, ("aten::mm",), 1, 3)
        assert add.dtypes == {"float32": CompiledVerdict.METAL, "int64": CompiledVerdict.WRONG}
        assert mul.verdict is CompiledVerdict.METAL
        assert (summary.executed, summary.breaks, summary.recompilations) == (3, 1, 3)

    def test_cases_that_show_the_same_are_one_finding(self, tmp_path: Path) -> None:
        keys = [opinfo("add", dtype, mode) for dtype in ("float32", "int64") for mode in (COMPILED, DYNAMIC)]
        (finding,) = summarized(tmp_path, *((key, WRONG) for key in keys)).findings
        assert (finding.cases, finding.dtypes, finding.dynamic_only) == (4, ("float32", "int64"), False)
        assert finding.source == WRONG.source

    def test_a_finding_with_symbolic_sizes_alone_says_so(self, tmp_path: Path) -> None:
        cases = ((opinfo("add", mode=COMPILED), METAL), (opinfo("add", mode=DYNAMIC), WRONG))
        (finding,) = summarized(tmp_path, *cases).findings
        assert finding.dynamic_only

    def test_operators_that_were_not_executed_are_not_listed(self, tmp_path: Path) -> None:
        skipped = CompiledOutcome(CompiledVerdict.SKIPPED, Outcome(CaseVerdict.SKIPPED, message="float64"))
        summary = summarized(tmp_path, (opinfo("add", mode=COMPILED), skipped))
        assert (summary.executed, summary.operators) == (0, ())


@pytest.mark.parametrize(
    ("group", "operator"),
    [
        ("add.Tensor", "add"),
        ("add_", "add"),
        ("nn.functional.gelu", "nn.functional.gelu"),
        ("__and__.Scalar", "__and__"),
    ],
)
def test_overloads_are_together(group: str, operator: str) -> None:
    assert operator_of(group) == operator
