"""Lines that only a real mps device executes: its errors, and where it differs from the simulated one.

What is behind them is replaced. Whole commands of a Mac are rehearsed in tests/simulated/reports/evidence.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running import device_health, environment, isolated, worker_limits, worker_setup
from mpsmith.audit.running.device_health import RECYCLED, DeviceHealth
from mpsmith.audit.running.host_code import load_host_code
from mpsmith.audit.running.worker_exit import DEVICE_LOST
from mpsmith.audit.running.worker_tasks import ON_DEVICE
from mpsmith.audit.shipped import requested_releases
from mpsmith.cli.audit_options import AuditRequest
from mpsmith.cli.preflight import preflight as preflight_command
from mpsmith.errors import MpsmithError
from mpsmith.kernels.verification import computing, timing, verify
from mpsmith.kernels.verification.computing import StoppedDeviceError
from mpsmith.kernels.verification.verify import FamilyResult
from mpsmith.reports import wording
from mpsmith.reports.evidence import kernel_runs, machine, preflight, preflight_steps
from mpsmith.reports.evidence.privacy import NO_NAMES
from mpsmith.simulator import opening
from mpsmith.simulator.fallback_recorders import WarningRecorder
from mpsmith.simulator.opening import DeviceKind, MpsDevice
from mpsmith.tracing.networks import execution
from mpsmith.tracing.process import TracedDevice
from support.json_document import documented

REAL = MpsDevice(simulated=False, profile=None, recorder=SimpleNamespace())  # type: ignore[arg-type]


class EndedError(Exception):
    """Instead of the end of the process."""


def end(code: int) -> None:
    raise EndedError(code)


@pytest.fixture
def health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceHealth:
    monkeypatch.setattr("os._exit", end)
    return DeviceHealth(tmp_path, memory=100)


def test_a_worker_ends_when_its_device_does_not_compute(health: DeviceHealth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_health, "canary", lambda: "wrong result of sum")
    for _ in range(2):
        with pytest.raises(MpsmithError, match="does not compute in a new process: wrong result of sum"):
            health.require_at_start()
    monkeypatch.setattr(device_health, "canary", lambda: "")
    health.require_at_start()
    health.require()
    monkeypatch.setattr(device_health, "canary", lambda: "wrong result of sum")
    health.require_at_start()  # it looks once
    with pytest.raises(EndedError, match=str(DEVICE_LOST)):
        health.require()


def test_a_worker_ends_when_it_holds_much(health: DeviceHealth, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [50, 50, 200, 80, 80, 200, 200]
    emptied: list[str] = []
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: held.pop(0))
    monkeypatch.setattr(torch.mps, "empty_cache", lambda: emptied.append("emptied"))
    health.recycle_if_full(1)
    assert emptied == []
    health.recycle_if_full(1)  # what the cache held was enough
    assert emptied == ["emptied"]
    with pytest.raises(EndedError, match=str(RECYCLED)):
        [health.recycle_if_full(1) for _ in range(2)]
    with pytest.raises(EndedError, match=str(RECYCLED)):
        health.recycle_if_full(device_health.MOST_CASES)


def test_a_case_that_ends_a_worker_is_judged_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone: list[int] = []
    runs = isolated.IsolatedExecution(Settings(), None, tmp_path)  # type: ignore[arg-type]
    monkeypatch.setattr(runs, "_real", True)
    monkeypatch.setattr(runs, "_judge_alone", lambda task, position: alone.append(position))
    ended: Any = None
    assert runs._record_case(ended, ended, (3, ON_DEVICE), ended, "")
    assert alone == [3]


@pytest.mark.parametrize("stops_in", ["verify", "measure"])
def test_the_process_of_kernels_ends_when_its_device_computes_no_more(
    stops_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise StoppedDeviceError("wrong result of sum")

    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(verify, "verify", stop if stops_in == "verify" else lambda family: FamilyResult(family))
    monkeypatch.setattr(timing, "measure", stop)
    with pytest.raises(EndedError, match=str(DEVICE_LOST)):
        kernel_runs.measure_family(kernel_runs.KernelTask("mode", partial(bool, False), False, NO_NAMES))


def test_times_of_a_device_that_computes_no_more_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.mps, "synchronize", lambda: None)
    monkeypatch.setattr(timing, "moved", lambda argument, device: argument)
    monkeypatch.setattr(computing, "device_of_this_process", lambda profile: REAL)
    monkeypatch.setattr(computing, "canary", lambda: "wrong result of sum")
    with pytest.raises(StoppedDeviceError, match="say nothing about heaviside: wrong result of sum"):
        timing.measure("heaviside", 8)


def test_a_real_device_refuses_simulation_options() -> None:
    options: Any = SimpleNamespace(settings=SimpleNamespace(shipped="2.13.0"), scratch=None)
    with pytest.raises(MpsmithError, match="--shipped is for the simulated device"):
        worker_setup._interpose_shipped_kernels(options, REAL)
    with pytest.raises(MpsmithError, match="faults can be put into the simulated device only"):
        worker_setup._inject_faults(("wrong add",), REAL)
    with pytest.raises(MpsmithError, match="--host-code is for the simulated device"):
        load_host_code("folder", None, REAL)


@pytest.mark.parametrize("option", ["--profile", "--shipped", "--host-code"])
def test_a_mac_refuses_options_of_the_simulated_device_before_anything_runs(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    settings = Settings(profile="2.15.0" if option == "--profile" else None)
    shipped, host_code = ("2.15.0" if option == name else None for name in ("--shipped", "--host-code"))
    request = AuditRequest(settings, Path("audit.sqlite"), shipped=shipped or "none", host_code=host_code)
    with pytest.raises(typer.BadParameter, match="needs Linux") as raised:
        request.check(workers=False)
    assert raised.value.param_hint == option
    AuditRequest(Settings(), Path("audit.sqlite"), shipped="auto").check(workers=False)


def test_a_mac_has_its_own_kernels_chip_and_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "sysctl"
    tool.write_text("#!/bin/sh\necho Apple M3 Pro\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert environment.chip() == "Apple M3 Pro"
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    monkeypatch.setattr(worker_limits, "memory_of_machine", lambda: 16 << 30)
    assert worker_limits.default_workers() == 2
    monkeypatch.setattr(sys, "platform", "darwin")
    assert requested_releases._installed(print) is None


def test_preflight_says_which_system_has_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Haiku")
    with pytest.raises(MpsmithError, match=f"this is {sys.platform}, which has none"):
        preflight_command()


def test_a_real_device_has_no_simulator_limits() -> None:
    message = next(iter(opening.SIMULATOR_LIMITS))
    assert REAL.simulator_limit(message) == ""
    assert REAL.cannot_run([torch.ones(2, 2).to_sparse_csr()]) == ""


def test_reports_name_the_chip_and_another_torch() -> None:
    run = SimpleNamespace(simulated=False, environment={"chip": "Apple M3", "os": "macOS 15.5", "torch": "2.12.0"})
    summary: Any = SimpleNamespace(run=run, surface_release="2.13.0", shipped=None)
    assert wording.simulated_note(summary) == ""
    assert wording.subtitle(summary) == "on Apple M3, macOS 15.5"
    assert "used torch 2.12.0, the list of overloads is that of torch 2.13.0" in str(wording.surface_note(summary))


def test_a_trace_of_a_real_device_asks_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "device_of_this_process", lambda profile: REAL)
    traced = TracedDevice.of(DeviceKind.AUTO, None)
    assert (traced.simulated, traced.profile) == (False, None)
    assert traced.counted_fallbacks() == {}
    assert execution._convolutions(traced) == Counter()


def test_warnings_name_fallbacks() -> None:
    always = torch.is_warn_always_enabled()
    try:
        with WarningRecorder().recording() as operators:
            for name in ("aten::mode", "aten::mode", "aten::logit"):
                warnings.warn(
                    f"The operator '{name}' is not currently supported on the MPS backend and will", stacklevel=1
                )
            warnings.warn("another", stacklevel=1)
    finally:
        torch.set_warn_always(always)
    assert operators == ["aten::mode", "aten::logit"]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The CPU takes the place of the device, for the steps of preflight."""
    to = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda x, *where: x if where == ("mps",) else to(x, *where))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: None)
    monkeypatch.setattr(preflight_steps, "_BYTES", 64)
    return monkeypatch


def test_preflight_compares_results(device: pytest.MonkeyPatch) -> None:
    assert preflight_steps.memory() == "0 MiB written and read back"
    assert preflight_steps.arithmetic() == "copies, sums and products are those of the CPU"
    device.setattr(torch.Tensor, "cpu", lambda x: torch.zeros_like(x))  # a builtin would be no method
    with pytest.raises(MpsmithError, match="come back changed"):
        preflight_steps.memory()
    with pytest.raises(MpsmithError, match="does not compute: wrong result of copy, x"):
        preflight_steps.arithmetic()

    def fail(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("MPS backend out of memory")

    device.setattr(torch.Tensor, "cpu", fail)
    with pytest.raises(MpsmithError, match="does not compute: RuntimeError: MPS backend out of memory"):
        preflight_steps.arithmetic()


def test_preflight_waits_for_a_warning(device: pytest.MonkeyPatch) -> None:
    device.setattr(preflight_steps, "_opened", lambda: SimpleNamespace(recorder=WarningRecorder()))
    device.setattr(preflight_steps, "_WITHOUT_KERNEL", (("aten::mode", lambda _: None),))
    always = torch.is_warn_always_enabled()
    try:
        with pytest.raises(MpsmithError, match="aten::mode has no mps kernel, but no warning"):
            preflight_steps.fallback()
    finally:
        torch.set_warn_always(always)
    device.setattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda overload, key: True)
    assert preflight_steps.fallback() == "not tried: this torch has kernels for aten::mode"
    on_cpu: Any = SimpleNamespace(
        nn=torch.nn,
        int64=torch.int64,
        ones=lambda *shape, device: torch.ones(shape),
        zeros=lambda *shape, dtype, device: torch.zeros(shape, dtype=dtype),
    )
    assert preflight_steps._multi_margin_loss(on_cpu).shape == ()


@pytest.mark.parametrize(
    ("library", "problem"),
    [
        (SyntaxError("no such type"), "the kernels of shrink do not compile: no such type"),
        ({}, "the library of shrink has no kernel"),
        ({"k": (128, 0)}, "k of shrink may have 128 threads in a threadgroup, 256 are needed"),
        ({"k": (1024, 40_000)}, "k of shrink takes 40000 bytes of threadgroup memory, not 32768"),
    ],
)
def test_preflight_makes_every_pipeline(library: Any, problem: str, device: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, source: str) -> None:
            if isinstance(library, Exception):
                raise library

        def __dir__(self) -> list[str]:
            return list(library)

        def __getattr__(self, name: str) -> Any:
            threads, size = library[name]
            return SimpleNamespace(max_threads_per_threadgroup=threads, static_thread_group_memory_length=size)

    device.setattr(torch.mps, "compile_shader", Library, raising=False)
    whole = preflight_steps._metal_files()
    assert len(whole) > 30
    device.setattr(preflight_steps, "_metal_files", lambda: [row for row in whole if row[0] == "shrink"])
    with pytest.raises(MpsmithError, match=problem):
        preflight_steps.kernels()


def test_preflight_stops_at_the_first_step_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> str:
        raise RuntimeError("MPS backend out of memory\nmore")

    monkeypatch.setattr(preflight_steps, "STEPS", {"device": lambda: "there", "memory": fail, "kernels": fail})
    monkeypatch.setenv("MPSMITH_KERNELS", "")  # main sets them
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "")
    assert preflight_steps.main() == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [next(iter(line)) for line in said] == ["begins", "passed", "begins", "failed"]
    assert "RuntimeError: MPS backend out of memory" in said[-1]["why"]
    monkeypatch.setattr(preflight_steps, "STEPS", {"device": lambda: "there"})
    assert preflight_steps.main() == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_shows_the_steps_and_the_problem(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    monkeypatch.setattr(machine, "is_mac", lambda: True)
    monkeypatch.setattr(machine, "is_virtual", lambda: True)
    report = preflight.Preflight({"device": "there"}, "memory: no room", 1.5)
    monkeypatch.setattr(preflight, "preflight", lambda: report)
    app = typer.Typer()
    app.command()(preflight_command)
    done = CliRunner().invoke(app, ["--json"] if as_json else [])
    assert done.exit_code == 1
    assert "preflight failed at memory: no room" in done.output
    if as_json:
        assert documented("preflight", done.stdout)["virtual"] is True
    else:
        assert "evidence of it is refused" in done.output
