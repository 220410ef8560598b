"""Evidence in the registry: what a pass on each device makes of an entry."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mpsmith import kernels
from mpsmith.kernels.verification import computing
from mpsmith.kernels.verification.evidence import record, source_digest
from mpsmith.kernels.verification.verify import Failure, FamilyResult, verify
from mpsmith.registry.files import load
from mpsmith.registry.model import Status


def passed(operators: set[str], family: str = "mode") -> FamilyResult:
    return FamilyResult(family, operators, cases=3, checks={"numerics"}, dtypes={"float32", "int64"})


def test_simulated_device_never_verifies(tmp_path: Path) -> None:
    (entry,) = record(tmp_path, [passed({"aten::mode"})], simulated=True)
    assert entry.status is Status.implemented
    assert entry.kernel == "mode"
    assert list(entry.evidence) == ["simulated"]
    assert entry.evidence["simulated"].source == source_digest("mode")
    assert entry.evidence["simulated"].dtypes == ["float32", "int64"]
    (entry,) = record(tmp_path, [passed({"aten::mode"})], simulated=False)
    assert entry.status is Status.verified
    assert list(entry.evidence) == ["mps", "simulated"]
    (entry,) = record(tmp_path, [passed({"aten::mode"})], simulated=True)
    assert entry.status is Status.verified


def test_failures_and_empty_results_are_not_evidence(tmp_path: Path) -> None:
    failed = passed({"aten::mode"})
    failed.failures.append(Failure("mode, float32, (float32[2])", "wrong"))
    assert record(tmp_path, [failed, FamilyResult("heaviside")], simulated=False) == []
    assert list(load(tmp_path)) == []
    assert str(failed.failures[0]) == "mode, float32, (float32[2]): wrong"


def test_simulated_device_has_no_evidence_for_overrides(tmp_path: Path) -> None:
    result = passed({"aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d"}, "adaptive_avg_pool3d")
    assert [entry.operator for entry in record(tmp_path, [result], simulated=True)] == ["aten::_adaptive_avg_pool3d"]
    assert len(record(tmp_path, [result], simulated=False)) == 2


def test_verifies_nothing_without_registered_kernels() -> None:
    torch.ones(2, requires_grad=True).sum().backward()  # no device can be loaded after it, and none is needed
    with kernels.use():
        result = verify("mode")
    assert result.cases == 0
    assert not result.passed
    assert result.native == ["mode", "mode, long_rows"]


@pytest.mark.parametrize(("simulated", "problem"), [(False, "wrong result of copy"), (False, ""), (True, "unasked")])
def test_a_device_that_stopped_computing_fails_no_kernel(
    simulated: bool, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "device_of_this_process", lambda profile: SimpleNamespace(simulated=simulated))
    monkeypatch.setattr(computing, "canary", lambda: problem)
    if simulated or not problem:
        computing.require_computing("mode")
        return
    with pytest.raises(computing.StoppedDeviceError, match="say nothing about mode: wrong result of copy"):
        computing.require_computing("mode")


def test_the_digest_follows_included_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_digest("multi_margin_loss") != source_digest("mode")
    before = source_digest("mode")
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: real(path) + (b" " if path.name == "reduce.metal" else b""))
    assert source_digest("mode") != before
