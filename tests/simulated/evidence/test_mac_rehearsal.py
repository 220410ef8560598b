"""The way of a Mac's evidence, with the simulated device posing as a real one: the results are thrown away.

Nothing here says what a Mac would compute. It says that the code which only runs there runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from mpsmith.audit.judging.fallbacks import WarningRecorder
from mpsmith.audit.running.device import AuditedDevice
from mpsmith.evidence import kernel_runs
from mpsmith.evidence.adding import add
from mpsmith.evidence.kernel_runs import KernelTask, measured_family
from mpsmith.evidence.privacy import NOBODY
from mpsmith.evidence.schema import EvidenceFile
from mpsmith.kernels.verification import verify
from mpsmith.registry.files import load
from mpsmith.registry.model import Status
from support.evidence_files import evidence_data, written

FAMILY, OPERATOR = "heaviside", "aten::heaviside"


def a_real_device() -> bool:
    """What the opened device says of itself: not simulated."""
    return False


@pytest.fixture
def posing_as_real(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("MPSMITH_KERNELS", "MPSMITH_METAL_MODE", "PYTORCH_ENABLE_MPS_FALLBACK"):
        monkeypatch.setenv(name, {"MPSMITH_METAL_MODE": "fast"}.get(name, "off" if "KERNELS" in name else "1"))
    always = torch.is_warn_always_enabled()
    monkeypatch.setattr(kernel_runs, "ELEMENTS", 2**12)
    monkeypatch.setattr(verify, "device_of_this_process", lambda: AuditedDevice(False, None, WarningRecorder()))
    yield
    torch.set_warn_always(always)


@pytest.mark.usefixtures("posing_as_real", "nothing_registered", "fallback_enabled")
def test_kernels_are_verified_timed_and_recorded_as_on_a_mac(tmp_path: Path) -> None:
    row = measured_family(KernelTask(FAMILY, a_real_device, simulated=False, identity=NOBODY))
    assert row.passed, row.failures
    assert row.operators == [OPERATOR]
    assert row.timing is not None, row.untimed
    assert row.timing.elements == 2**12
    assert row.timing.kernel is not None
    data = evidence_data({OPERATOR: {"float32": {"fallback": 1}}}, kernels=[json.loads(row.model_dump_json())])
    added = add(written(tmp_path, EvidenceFile.model_validate(data)), tmp_path / "registry")
    assert added.verified == (OPERATOR,)
    assert load(tmp_path / "registry")[OPERATOR].status is Status.verified
