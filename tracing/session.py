"""`with mpsmith.trace() as t:` records the calls of a block, in a notebook or a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..simulator.opening import DeviceKind
from . import json_form, text
from .journal import Journal
from .process import TracedDevice
from .recording import Recording
from .summary import SiteCalls, Summary, finished_kernels, summarize

if TYPE_CHECKING:
    from .device_clock import DeviceClock


class Trace:
    """The recording of a block of code; while the block runs, the recording so far.

    ``print(t)`` or ``t`` at the end of a notebook's cell shows the tables.
    """

    def __init__(self, opened: TracedDevice, journal: Journal, clock: DeviceClock) -> None:
        self._opened = opened
        self._journal = journal
        self._clock = clock
        self._counted = opened.counted_fallbacks()
        self._ended: Recording | None = None

    @property
    def recording(self) -> Recording:
        """The recording as data."""
        return self._ended or self._journal.recording()

    @property
    def summary(self) -> Summary:
        """The recording, summarized."""
        return summarize(self.recording, kernels=finished_kernels())

    @property
    def fallbacks(self) -> Sequence[SiteCalls]:
        """The calls that ran on the CPU, by overload and line, the longest first."""
        return self.summary.fallbacks

    @property
    def waits(self) -> Sequence[SiteCalls]:
        """Where the host waited for the GPU without a fallback: `.item()`, `.cpu()`, printing a tensor."""
        return self.summary.waits

    def forbidden(self, allow: Sequence[str] = ()) -> tuple[str, ...]:
        """The overloads that fell back, without the operators or overloads in `allow`."""
        return summarize(self.recording, allowed=allow).forbidden

    def to_json(self) -> dict[str, Any]:
        """The data that `mpsmith trace --json` prints."""
        return json_form.to_json(self.summary)

    def __str__(self) -> str:
        return text.as_text(self.summary)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The tables in a notebook."""
        return text.as_html(self.summary)

    def _end(self) -> None:
        now = self._opened.counted_fallbacks()
        more = {name: calls - self._counted.get(name, 0) for name, calls in now.items()}
        self._journal.add_facts({"counted_fallbacks": {name: calls for name, calls in more.items() if calls > 0}})
        if (elapsed := self._clock.milliseconds()) is not None:
            self._journal.add_facts({"device_milliseconds": elapsed})
        self._ended = self._journal.recording()


@contextmanager
def trace(*, lines: bool = True) -> Iterator[Trace]:
    """Record what the block does on mps; see `mpsmith.trace`."""
    opened = TracedDevice.of(DeviceKind.AUTO, None)
    from .device_clock import DeviceClock
    from .recorder import CallRecorder

    journal = Journal()
    journal.add_facts(opened.facts())
    clock = DeviceClock()
    seen = Trace(opened, journal, clock)
    recorder = CallRecorder(
        lambda: journal,
        lines=lines,
        always_falls_back=opened.always_falls_back,
        at_first_call=(lambda: None) if opened.simulated else clock.start,
    )
    recorder.start()
    try:
        yield seen
    finally:
        recorder.stop()
        seen._end()
