"""Makes every Python process with this folder on PYTHONPATH take the simulated mps device for a real one.

For the rehearsal of the Mac alone: what runs only where the device is real runs, and its results are thrown away.
Python imports this module by itself as it starts; torch and mpsmith are changed as soon as they have been imported.
"""

from __future__ import annotations

import builtins
import importlib.util
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import posed_faults

FAULT = posed_faults.chosen()

# What mpsmith may import of the simulator where the device is real: it runs nothing of it.
ON_A_MAC = (
    *("errors", "opening", "fallback_recorders"),
    *("device.coverage_profile", "device.refusals", "upstream.host_work"),  # types that results and registry share
    "device.inheritance",  # the command line starts with it: an environment variable asks for the simulated device
    "air.container",  # reads the list of kernels in a wheel
    "clang.cache",  # keeps files by a fingerprint
    # A worker asks whether a simulated device is loaded, counts what was launched, and pauses nothing.
    *("device", "device.loading", "device.launch_counts", "device.pause"),
)
# These say what this machine has.
DOCTOR = "mpsmith.cli.doctor"


def refuse_the_simulator() -> None:
    """Let an import fail that a Mac does not need."""
    usual = builtins.__import__

    def on_a_mac(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        importer = (globals or {}).get("__name__", "")
        if importer.startswith("mpsmith.") and not importer.startswith(("mpsmith.simulator.", DOCTOR)):
            whole = importlib.util.resolve_name("." * level + name, globals["__package__"]) if level else name
            part = whole.removeprefix("mpsmith.simulator.")
            if part != whole and part not in ON_A_MAC:
                raise ImportError(f"{importer} imports {whole}, which a Mac does not need")
        return usual(name, globals, locals, fromlist, level)

    builtins.__import__ = on_a_mac


class AfterImport(MetaPathFinder):
    """Calls functions with modules that have just been imported, by the modules' names."""

    def __init__(self, wanted: dict[str, Callable[[Any], None]]) -> None:
        self._wanted = wanted

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with a loader that calls the function afterwards."""
        act = self._wanted.pop(name, None)
        spec = importlib.util.find_spec(name) if act else None
        if act is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            act(module)

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def torch_of_a_mac(backend: Any) -> None:
    """An mps device that is there, with the coverage of this torch, and what the C module has on a Mac.

    In the middle of torch's import, since `mpsmith trace` begins at its end.
    """
    c_module: Any = sys.modules["torch._C"]

    @cache
    def opened() -> bool:
        from mpsmith.audit.releases.surface.profiles import coverage_profile
        from mpsmith.simulator import metal
        from mpsmith.simulator.device import loading
        from mpsmith.simulator.objc import torch_hook

        backend.is_available = lambda: True  # asked for again while the device is being loaded
        loading.load(coverage_profile(None))
        metal.install()
        torch_hook.install()
        if FAULT is not None:
            FAULT.install(sys.modules["torch"].Tensor)
        return True

    backend.is_available = opened
    at: list[float] = []

    def acquired(enable_timing: bool) -> int:
        at.append(0.0)
        return len(at)

    def recorded(event: int) -> None:
        at[event - 1] = time.perf_counter()

    c_module._mps_acquireEvent = acquired
    c_module._mps_recordEvent = recorded
    c_module._mps_elapsedTimeOfEvents = lambda start, end: (at[end - 1] - at[start - 1]) * 1e3
    c_module._mps_synchronizeEvent = c_module._mps_releaseEvent = lambda event: None
    c_module._mps_profilerStartTrace = lambda mode, wait: None
    c_module._mps_profilerStopTrace = lambda: None


def device_of_a_mac(opening: Any) -> None:
    """Opens the device that torch reports."""

    @cache
    def device_of_this_process(find_profile: Any) -> Any:
        return opening.open_device(opening.DeviceKind.AUTO, find_profile)

    opening.device_of_this_process = device_of_this_process


def environment_of_a_mac(module: Any) -> None:
    """Reports a build of torch that Macs have."""
    environment = module.environment

    def on_a_mac(opened: Any) -> dict[str, Any]:
        result: dict[str, Any] = environment(opened)
        return result | {"torch": result["torch"].split("+")[0]}

    module.environment = on_a_mac


def machine_of_a_mac(machine: Any) -> None:
    """A system that is macOS; its tools are programs on the PATH."""
    machine.platform = SimpleNamespace(
        system=lambda: "Darwin",
        machine=lambda: "arm64",
        mac_ver=platform.mac_ver,
        python_version=platform.python_version,
    )


def releases_of_a_mac(requested_releases: Any) -> None:
    """A real device launches its own kernels, whatever is asked for."""
    requested_releases.sys = SimpleNamespace(platform="darwin")


def impatient(device_health: Any) -> None:
    """A device that hangs for good is noticed in seconds."""
    if isinstance(FAULT, posed_faults.HangsLater):
        device_health.SECONDS_TO_START = 10.0


def short_timings(kernel_runs: Any) -> None:
    """Shaders run on the CPU here: a million elements would take minutes."""
    kernel_runs.ELEMENTS = 2**10


def small_matrices(matrix_kinds: Any) -> None:
    """Those of the simulated device: for larger ones eig alone takes half an hour on the CPU."""
    matrix_kinds._LARGE = ()


def patient(preflight: Any) -> None:
    """A busy machine is slow without a fault: only the fault that hangs waits for the limit of a Mac."""
    if not isinstance(FAULT, posed_faults.Hang):
        preflight.preflight.__defaults__ = (preflight.COMMAND, 3600.0)


def few_kernels(preflight_steps: Any) -> None:
    """Each pipeline is compiled for the host here, 513 of them would take minutes."""
    whole = preflight_steps._metal_files
    preflight_steps._metal_files = lambda: [row for row in whole() if row[0] == "heaviside"]


def judge_of_a_sick_mac(judge: Any) -> None:
    """Counts cases, if the fault comes after some."""
    if hasattr(FAULT, "judge"):
        FAULT.judge(judge)


def note_lines() -> None:
    """Note the lines that run on a Mac alone, if a report of them is asked for."""
    path = Path(__file__).parents[1] / "mac_lines.py"
    spec = importlib.util.spec_from_file_location("mac_lines", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.record()


note_lines()
refuse_the_simulator()
sys.meta_path.insert(
    0,
    AfterImport(
        {
            "mpsmith.audit.judging.judge": judge_of_a_sick_mac,
            "torch.backends.mps": torch_of_a_mac,
            "mpsmith.simulator.opening": device_of_a_mac,
            "mpsmith.audit.running.environment": environment_of_a_mac,
            "mpsmith.audit.running.device_health": impatient,
            "mpsmith.reports.evidence.machine": machine_of_a_mac,
            "mpsmith.audit.shipped.requested_releases": releases_of_a_mac,
            "mpsmith.reports.evidence.kernel_runs": short_timings,
            "mpsmith.reports.evidence.preflight": patient,
            "mpsmith.reports.evidence.preflight_steps": few_kernels,
            "mpsmith.kernels.verification.matrix_kinds": small_matrices,
        }
    ),
)
