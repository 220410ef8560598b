"""What the cases of an audit say of a name: which verdict prevails in a dtype, and which only some calls had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.answers import measuring
from mpsmith.audit.answers.compositions import NO_PARTS, Composition
from mpsmith.audit.answers.measuring import measured_names, refuses_arguments
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict as V
from mpsmith.audit.model.verdicts import Outcome
from mpsmith.audit.store.records import StoredCase
from support.stores import begun, new_store, opinfo

PROJECTIONS = "raises RuntimeError: LSTM with projections is not currently supported with MPS."


def cases(dtype: str, *outcomes: tuple[V, str]) -> list[StoredCase]:
    key = GroupKey("modules", "nn.LSTM", "train", dtype, "fallback")
    return [StoredCase(i, key, i, Outcome(v, "forward", text), "(float32[2])") for i, (v, text) in enumerate(outcomes)]


def test_a_call_that_is_refused_is_not_wrong() -> None:
    refused, right = (V.WRONG, PROJECTIONS), (V.PASSED, "")
    lstm = measured_names([*cases("float32", right, refused), *cases("float16", right, refused, refused)])["nn.LSTM"]
    assert lstm.prevailing == {V.PASSED: ("float32", "float16")}
    assert lstm.some == {V.DTYPE_GAP: ("float32", "float16")}
    assert (lstm.case, lstm.message) == ("modules:nn.LSTM.train:float32:1", PROJECTIONS)
    none_right = measured_names(cases("float32", refused, refused))["nn.LSTM"]
    assert (none_right.prevailing, none_right.some) == ({V.DTYPE_GAP: ("float32",)}, {})


def test_a_wrong_result_stays_wrong_beside_refusals() -> None:
    differs, right = (V.WRONG, "3 of 3 elements differ; at [0]: 1.0, CPU 2.0, float64 2.1"), (V.PASSED, "")
    lstm = measured_names(cases("float32", right, differs, differs, (V.WRONG, PROJECTIONS)))["nn.LSTM"]
    assert lstm.prevailing == {V.WRONG: ("float32",)}
    assert lstm.some == {V.PASSED: ("float32",), V.DTYPE_GAP: ("float32",)}
    assert lstm.message == differs[1].partition(", float64")[0]


def test_a_refused_size_is_listed_separately() -> None:
    right, refused = cases("float32", (V.PASSED, ""), (V.WRONG, PROJECTIONS))
    large = replace(refused, group=replace(refused.group, source="module sizes"))
    assert measured_names([right, large])["nn.LSTM"].at_sizes == ("float32",)
    assert measured_names([right, large])["nn.LSTM"].some == {}
    both = measured_names([right, right, large, refused])["nn.LSTM"]
    assert (both.at_sizes, both.some) == ((), {V.DTYPE_GAP: ("float32",)})
    assert measured_names([large])["nn.LSTM"].prevailing == {V.DTYPE_GAP: ("float32",)}


def test_call_that_passes_beside_a_fallback_shows_no_kernel() -> None:
    of_pool = measured_names(cases("float32", (V.FALLBACK, ""), (V.FALLBACK, ""), (V.PASSED, "")))["nn.LSTM"]
    assert (of_pool.prevailing, of_pool.some) == ({V.FALLBACK: ("float32",)}, {})


def test_a_call_that_the_cpu_also_refuses_is_not_right() -> None:
    refusal = Outcome(V.PASSED, compared="errors")
    right, integers = cases("float32", (V.PASSED, "")), cases("int64", (V.PASSED, ""))
    lstm = measured_names([*right, *(replace(case, outcome=refusal) for case in integers)])["nn.LSTM"]
    assert lstm.prevailing == {V.PASSED: ("float32",)}


def test_the_operators_without_a_kernel_are_counted() -> None:
    right, on_cpu = cases("float32", (V.PASSED, ""), (V.FALLBACK, ""))
    fell_back = replace(on_cpu, outcome=replace(on_cpu.outcome, fallbacks=("aten::lerp_", "aten::lerp_")))
    assert measured_names([right, fell_back])["nn.LSTM"].without_kernel == Composition(2, {"lerp_": 1})
    assert measured_names([right])["nn.LSTM"].without_kernel == NO_PARTS


def test_a_call_counts_under_the_dtype_of_its_tensors() -> None:
    (case,) = cases("float32", (V.PASSED, ""))
    key = replace(case.group, source="schema", operator="bitwise_and.Tensor")
    of_integers = replace(case, group=key, inputs="(int64[2], int64[])")
    assert measured_names([of_integers])["bitwise_and.Tensor"].prevailing == {V.PASSED: ("int64",)}


def test_an_error_about_values_or_a_kernel_is_wrong() -> None:
    fault = "raises KernelFault: shipped kernel k of torch 2.13.0: out of bounds load"
    assert not refuses_arguments(cases("float32", (V.WRONG, fault))[0])
    refused = cases("float32", (V.WRONG, PROJECTIONS))[0]
    assert refuses_arguments(refused)
    assert not refuses_arguments(replace(refused, group=replace(refused.group, source="module special values")))


@pytest.mark.parametrize(("ops", "written"), [([], ["host work", "names"]), (["exp"], ["host work"])])
def test_a_whole_audit_by_host_code_measures_names_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ops: list[str], written: list[str]
) -> None:
    environment = {"torch": "2.13.0+cpu", "simulated": True, "variables": {}, "host_code": {"source": "2.13.0"}}
    with new_store(tmp_path) as store:
        recording = begun(store, {"ops": ops, "dtypes": []}, environment)
        recording.add(opinfo("exp"), Outcome(V.PASSED))
        recording.finish()
        path = store.path
    files: list[str] = []
    monkeypatch.setattr(measuring, "write", lambda measured: files.append("names"))
    monkeypatch.setattr(measuring, "write_host_facts", lambda release, work: files.append("host work"))
    measuring.main(path)
    assert files == written
