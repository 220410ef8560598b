"""Records the processes of a traced program from the inside.

`mpsmith.autoload` calls `begin` at the end of `import torch`, in every process that has the variable. So the program
keeps its arguments, its traceback, its exit code and its children.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import MpsmithError
from ..simulator.opening import DeviceKind

VARIABLE = "MPSMITH_TRACE"
FALLBACK_VARIABLE = "PYTORCH_ENABLE_MPS_FALLBACK"


@dataclass(frozen=True)
class TraceOptions:
    """Options that `mpsmith trace` passes to the traced processes.

    Attributes:
        folder: for the journals.
        parent: the process id of `mpsmith trace`, the parent of the program.
        device: a value of DeviceKind; `profile`: the coverage profile of the simulated device.
    """

    folder: str
    parent: int
    device: str
    profile: str | None

    def to_environment(self) -> dict[str, str]:
        """The environment variables that pass the options on and enable torch's autoload."""
        return {VARIABLE: json.dumps(asdict(self)), FALLBACK_VARIABLE: "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}


def begin() -> None:
    """Record this process from here to its end, with the options in the variable."""
    options = TraceOptions(**json.loads(os.environ[VARIABLE]))
    folder = Path(options.folder)
    if not folder.is_dir():
        return  # a child that outlives `mpsmith trace`
    from .journal import Journal

    is_program = os.getppid() == options.parent
    try:
        opened = TracedDevice.of(DeviceKind(options.device), options.profile)
    except MpsmithError as error:
        if is_program:
            Journal(folder, rows=1).add_facts({"error": str(error)})
            os._exit(2)  # only imports of the program have run
        warnings.warn(f"a child of a traced program has no mps device: {error}", stacklevel=2)
        return
    from .device_clock import DeviceClock
    from .recorder import CallRecorder

    def new_journal() -> Journal:
        journal = Journal(folder)
        journal.add_facts(opened.facts())
        return journal

    clock = DeviceClock()
    recorder = CallRecorder(
        new_journal,
        always_falls_back=opened.always_falls_back,
        at_first_call=clock.start if is_program and not opened.simulated else lambda: None,
    )
    if is_program:
        recorder.journal  # noqa: B018 - records that torch was imported, even without a call
        _watch_late_variable(recorder)

    def reset_in_child() -> None:
        recorder.reset_in_child()
        opened.reset_counts()

    def end() -> None:
        recorder.stop()
        if recorder.has_written:
            recorder.journal.add_facts({"counted_fallbacks": opened.counted_fallbacks(), "ended": True})
            if (elapsed := clock.milliseconds()) is not None:
                recorder.journal.add_facts({"device_milliseconds": elapsed})

    os.register_at_fork(after_in_child=reset_in_child)
    atexit.register(end)
    recorder.start()


@dataclass(frozen=True)
class TracedDevice:
    """The mps device of a traced process and its own fallback counters."""

    simulated: bool
    profile: str | None
    always_falls_back: frozenset[str]

    @classmethod
    def of(cls, kind: DeviceKind, profile: str | None) -> TracedDevice:
        """Open the device. Raises MpsmithError if there is none."""
        from ..audit.releases.surface.profiles import coverage_profile
        from ..simulator.opening import device_of_this_process, open_device

        shared = kind is DeviceKind.AUTO and profile is None
        device = device_of_this_process(coverage_profile) if shared else open_device(kind, coverage_profile, profile)
        if device.simulated:
            from ..simulator.device import loading

            loaded = loading.loaded_profile()
            return cls(True, device.profile, loaded.always_fallback if loaded else frozenset())
        import torch

        from ..audit.releases import data

        release = data.facts_for(torch.__version__)
        return cls(False, None, frozenset(release.always_falls_back if release else ()))

    def facts(self) -> dict[str, Any]:
        """The facts about this process for its journal."""
        import torch

        return {"simulated": self.simulated, "profile": self.profile, "torch": torch.__version__, "arguments": sys.argv}

    def counted_fallbacks(self) -> dict[str, int]:
        """Fallbacks by overload, from the counters of the simulated device; empty on a real device."""
        if not self.simulated:
            return {}
        from ..simulator.device import loading

        return {name: calls.fallback for name, calls in loading.counters().items() if calls.fallback}

    def reset_counts(self) -> None:
        """Reset the counters of the simulated device, which a forked child inherits."""
        if self.simulated:
            from ..simulator.device import loading

            loading.reset_counters()


def _watch_late_variable(recorder: Any) -> None:
    """Record where the program enables fallbacks after importing torch, which has no effect without `trace`."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "os.putenv" or os.fsdecode(arguments[0]) != FALLBACK_VARIABLE:
            return
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith("<frozen "):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None and any(value is sys.modules["torch"] for value in list(frame.f_globals.values())):
            recorder.journal.add_facts({"late_variable": f"{frame.f_code.co_filename}:{frame.f_lineno}"})

    sys.addaudithook(hook)
