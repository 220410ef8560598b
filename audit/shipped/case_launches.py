"""Runs the simulated device of this process with shipped kernels, and records the launches of each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...simulator.device import loading as device
from ...simulator.device.launch_counts import drain
from ...simulator.device.pause import paused
from ..model.launches import Launches, LaunchesByOverload
from .kernels import AuditedKernels
from .value_overloads import computes_values

if TYPE_CHECKING:
    from ...simulator.device.launch_counts import OverloadLaunches
    from ...simulator.metal.modes import Mode

NO_CONVENTION = "no convention says which kernels the host launches"

Drained = Callable[[], LaunchesByOverload]


def put_under_device(library: Path, release: str, scratch: Path) -> AuditedKernels:
    """Make the simulated device of this process compute with the kernels of a library. Raises MpsmithError."""
    from ...simulator.air.library import AirLibrary
    from ...simulator.shipped import interposition

    kernels = AuditedKernels(AirLibrary(library, release), scratch)
    interposition.activate(kernels)
    return kernels


class GroupComputing:
    """Selects shipped kernels or stand-ins for each case of a group.

    `positions`: the cases that use shipped kernels; None if the device has none or host code launches them. `modes`:
    the checking mode of the kernels of a case, if it is not `fast`. `host_launches`: of the native calls since it was
    last called, without `positions`.
    """

    def __init__(
        self,
        positions: frozenset[int] | None,
        modes: Mapping[int, Mode] = MappingProxyType({}),
        host_launches: Drained = dict,
    ) -> None:
        self._positions = positions
        self._modes = modes
        self._host_launches = host_launches

    @contextmanager
    def of_case(self, position: int) -> Iterator[Drained]:
        """A context for one case. Its value returns the launches of the native calls so far."""
        if self._positions is None:
            self._host_launches()
            with self._checks(position):
                yield self._host_launches
        elif position in self._positions:
            drain()
            device.drain_calls()
            with self._checks(position):
                yield launches
        else:
            with paused():
                yield dict

    def _checks(self, position: int) -> AbstractContextManager[object]:
        if position not in self._modes:
            return nullcontext()
        from ...simulator.metal.modes import checking

        return checking(self._modes[position])


def launches() -> LaunchesByOverload:
    """The launches of native calls since the last call of this function, without overloads that compute no values."""
    planned = drain()
    by_overload = _computing(planned)
    for overload, calls in device.drain_calls().items():
        if calls.native and overload not in planned and computes_values(overload):
            by_overload[overload] = Launches(stood_in=Counter({NO_CONVENTION: calls.native}))
    return by_overload


def host_code_launches() -> LaunchesByOverload:
    """The launches of host code since the last call of this function."""
    return _computing(drain())


def _computing(counted: Mapping[str, OverloadLaunches]) -> LaunchesByOverload:
    return {
        overload: Launches(counts.launched, Counter(counts.kernels), Counter(counts.stood_in))
        for overload, counts in counted.items()
        if counts.launched or counts.stood_in
    }
