"""The side of a traced program: how its processes come to be recorded, and what they say of themselves.

`mpsmith.autoload` calls `begin` at the end of `import torch`, in every process that has the variable. So a program runs
as it always does: its arguments, its traceback, its exit code and its children are its own.
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
class Order:
    """What a traced process is told.

    Attributes:
        folder: where its journals go.
        parent: the process of `mpsmith trace`, whose child is the program itself.
        device: which mps device, a value of DeviceKind; `profile` of the simulated one.
        lines: False to count alone.
        signposts: whether torch writes signposts for Instruments.
    """

    folder: str
    parent: int
    device: str
    profile: str | None
    lines: bool
    signposts: bool = False

    def to_environment(self) -> dict[str, str]:
        """The variables that hand it on; torch's autoload, which reads them, is on."""
        return {VARIABLE: json.dumps(asdict(self)), FALLBACK_VARIABLE: "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}


def begin() -> None:
    """Record this process from here to its end, as the variable says."""
    order = Order(**json.loads(os.environ[VARIABLE]))
    folder = Path(order.folder)
    if not folder.is_dir():
        return  # a child that outlives `mpsmith trace`: nobody waits for what it sees
    from .journal import Journal

    is_program = os.getppid() == order.parent
    try:
        opened = Opened.of(DeviceKind(order.device), order.profile)
    except MpsmithError as error:
        if is_program:
            Journal(folder, rows=1, events=1).tell({"error": str(error)})
            os._exit(2)  # nothing of the program has run that could be lost but its imports
        warnings.warn(f"a child of a traced program has no mps device: {error}", stacklevel=2)
        return
    from .instruments import DeviceClock, start_signposts
    from .recorder import Recorder

    def new_journal() -> Journal:
        journal = Journal(folder)
        journal.tell(opened.facts())
        return journal

    clock = DeviceClock()
    recorder = Recorder(
        new_journal,
        lines=order.lines,
        always_falls_back=opened.always_falls_back,
        at_first_call=clock.start if is_program and not opened.simulated else lambda: None,
    )
    if is_program:
        recorder.journal  # noqa: B018 - says that torch was imported, even where nothing follows
        _see_late_variable(recorder)
        if order.signposts:
            recorder.journal.tell({"signposts": not opened.simulated and start_signposts()})

    def begin_again_in_child() -> None:
        recorder.begin_again_in_child()
        opened.forget_counts()

    def end() -> None:
        recorder.stop()
        if recorder.has_written:
            recorder.journal.tell({"counted_fallbacks": opened.counted_fallbacks(), "ended": True})
            if (elapsed := clock.milliseconds()) is not None:
                recorder.journal.tell({"device_milliseconds": elapsed})

    os.register_at_fork(after_in_child=begin_again_in_child)
    atexit.register(end)
    recorder.start()


@dataclass(frozen=True)
class Opened:
    """The mps device of a process, and what it can say of fallbacks beyond what is seen."""

    simulated: bool
    profile: str | None
    always_falls_back: frozenset[str]

    @classmethod
    def of(cls, kind: DeviceKind, profile: str | None) -> Opened:
        """Open the device. Raises MpsmithError where it cannot be had."""
        from ..audit.releases.surface.profiles import coverage_profile
        from ..simulator.device import loading
        from ..simulator.opening import device_of_this_process, open_device

        known = kind is DeviceKind.AUTO and profile is None
        device = device_of_this_process(coverage_profile) if known else open_device(kind, coverage_profile, profile)
        if device.simulated:
            loaded = loading.loaded_profile()
            return cls(True, device.profile, loaded.always_fallback if loaded else frozenset())
        import torch

        from ..audit.releases import data

        release = data.facts_for(torch.__version__)
        return cls(False, None, frozenset(release.always_falls_back if release else ()))

    def facts(self) -> dict[str, Any]:
        """What a journal says of the process that wrote it."""
        import torch

        return {
            "simulated": self.simulated,
            "profile": self.profile,
            "torch": torch.__version__,
            "arguments": sys.argv,
        }

    def counted_fallbacks(self) -> dict[str, int]:
        """How often each overload fell back by the simulated device's own counters; nothing on a real device."""
        if not self.simulated:
            return {}
        from ..simulator.device import loading

        return {name: calls.fallback for name, calls in loading.counters().items() if calls.fallback}

    def forget_counts(self) -> None:
        """Count from zero on the simulated device: a forked child has its parent's numbers."""
        if self.simulated:
            from ..simulator.device import loading

            loading.reset_counters()


def _see_late_variable(recorder: Any) -> None:
    """Tell where the program allows fallbacks after it has imported torch, which is too late without `trace`."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "os.putenv" or os.fsdecode(arguments[0]) != FALLBACK_VARIABLE:
            return
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith("<frozen "):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None and any(value is sys.modules["torch"] for value in list(frame.f_globals.values())):
            recorder.journal.tell({"late_variable": f"{frame.f_code.co_filename}:{frame.f_lineno}"})

    sys.addaudithook(hook)
