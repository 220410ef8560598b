"""Faults that are planted into PyTorch's host code: their texts, what goes together, and which count as found."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.self_test import host_faults
from mpsmith.audit.self_test.host_faults import (
    CaseResult,
    FaultResult,
    HostFault,
    audit_faults,
    fault_result,
    rounds_of,
    table,
)
from mpsmith.errors import MpsmithError
from mpsmith.simulator.upstream.sources import source_of_release


def fault(file: str = "operations/Sort", **more: object) -> HostFault:
    fields = {"kind": "cache key", "file": file, "operators": ["sort"], "was": "key + dim;", "becomes": "key;"}
    return HostFault.model_validate(fields | more)


def test_there_are_faults_of_each_kind() -> None:
    kinds = Counter(fault.kind for fault in host_faults.host_faults())
    assert sorted(kinds) == [
        "cache key",
        "dropped offset",
        "forgotten contiguous",
        "missing gather",
        "swapped operands",
        "wrong cast",
        "wrong macOS branch",
    ]
    assert kinds.total() >= 30
    assert min(kinds.values()) >= 5


def test_a_text_is_replaced_if_it_occurs_once_ignoring_spaces() -> None:
    assert fault().changed("string key +\n    dim; key;") == "string key; key;"
    for text, count in (("key;", 0), ("key + dim; key +  dim;", 2)):
        with pytest.raises(MpsmithError, match=rf"operations/Sort.mm has {count} times, and not once: key \+ dim;"):
            fault().changed(text)


def test_a_fault_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="until"):
        fault(until="2.7.0")


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (fault("operations/Shape", operators=["topk"]), True),
        (fault(operators=["topk"]), False),
        (fault("operations/Shape"), False),
        (fault("operations/Shape", operators=["topk"], macos="14.0"), False),
        (fault("operations/Shape", operators=["topk"], dtype="int64"), False),
        (fault("operations/Shape", operators=["topk"], alone=True), False),
        (fault("operations/Gamma", operators=["lgamma"], whole=True), False),
    ],
)
def test_only_independent_faults_are_planted_together(other: HostFault, together: bool) -> None:
    assert [len(r) for r in rounds_of([fault(), other])] == ([2] if together else [1, 1])
    assert [len(r) for r in rounds_of([other, fault()])] == ([2] if together else [1, 1])


def test_a_fault_is_found_by_cases_that_pass_without_it() -> None:
    def results(**verdicts: CaseVerdict) -> dict[str, CaseResult]:
        return {
            label: CaseResult(label.partition("_")[0], verdict, f"{label} differs")
            for label, verdict in verdicts.items()
        }

    passed, wrong = CaseVerdict.PASSED, CaseVerdict.WRONG
    clean = results(sort_0=passed, sort_1=wrong, sort_2=passed, topk_0=passed, sort_3=CaseVerdict.SKIPPED)
    planted = results(sort_0=wrong, sort_1=wrong, sort_2=passed, topk_0=wrong, sort_3=CaseVerdict.SKIPPED)
    shown = fault_result(fault(), planted, clean)
    assert shown == FaultResult(fault(), 1, 3, "sort_0 differs")
    missed = fault_result(fault(), clean, clean)
    assert (missed.failing, missed.message) == (0, "")
    assert table([shown, missed]).splitlines()[2:] == [
        "| cache key | operations/Sort | sort | 26 | 1 | 3 |",
        "| cache key | operations/Sort | sort | 26 | 0 | 3 |",
        "",
        "1 of 2 faults are found",
    ]


@pytest.mark.network
def test_the_text_of_each_fault_is_in_the_sources_once() -> None:
    backend = source_of_release(host_faults.RELEASE) / "aten/src/ATen/native/mps"
    for fault in host_faults.host_faults():
        text = (backend / f"{fault.file}.mm").read_text()
        assert fault.changed(text) != text


@pytest.mark.network
def test_a_planted_fault_is_found() -> None:
    chosen = [fault for fault in host_faults.host_faults() if fault.operators == ("nn.functional.leaky_relu",)]
    [shown] = audit_faults(chosen, 1, lambda line: None)
    assert shown.failing > 0
