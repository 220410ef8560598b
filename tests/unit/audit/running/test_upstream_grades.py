"""Which cases upstream's own code computed: those in which it launched something, and nothing fell back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.running.upstream_source import UpstreamKernels
from mpsmith.simulator.objc import bridge

PASSED = Outcome(CaseVerdict.PASSED)


def test_a_case_in_which_a_graph_ran_is_graded_as_host_code() -> None:
    graphs = [5]
    kernels = UpstreamKernels(frozenset({"aten::softmax"}), lambda: graphs[0])
    kernels.begin_case()
    assert kernels.grade(PASSED) is None
    graphs[0] += 1
    assert kernels.grade(PASSED) is Grade.HOST_CODE


def test_a_case_is_graded_by_what_it_launched_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = UpstreamKernels(frozenset({"aten::eye"}))
    monkeypatch.setattr(bridge, "_counted", [3])
    kernels.begin_case()
    bridge._counted[0] += 1
    assert kernels.grade(PASSED) is Grade.HOST_CODE
    assert kernels.grade(replace(PASSED, fallbacks=("aten::eye",))) is None
    kernels.begin_case()  # the next one launches nothing
    assert kernels.grade(PASSED) is None
