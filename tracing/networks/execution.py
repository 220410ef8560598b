"""Runs a network in one mode in this process, without and with `import mpsmith.kernels`, and records its calls.

The recorder of `mpsmith trace` sees the calls; the counters of the simulated device complete them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from ...audit.compiled.judging import ready_to_compile
from ...audit.compiled.lowering import Lowering, recorded_compilation
from ...errors import MpsmithError, one_line
from ..classification import OverloadTraits
from ..journal import Journal
from ..process import TracedDevice
from ..recorder import CallRecorder
from ..recording import CallKind
from . import modes, workload
from .catalog import EXTRA, Network
from .observation import Called, Mode, NetworkObservation, NetworkOutcome

# Operators that a torch without mps calls for a convolution.
_PLACEHOLDERS = ("aten::convolution_overrideable", "aten::convolution_backward_overrideable")


@dataclass(frozen=True)
class _Run:
    """The calls of one run, the error that ended it early, and what torch.compile generated."""

    called: Called
    error: BaseException | None
    lowering: Lowering | None


def observe(network: Network, mode: Mode, opened: TracedDevice) -> NetworkObservation:
    """Build the network and run it; if something falls back, run it again with the kernels.

    Raises MpsmithError if its builder is not a function.
    """
    start = time.perf_counter()
    release = opened.profile or torch.__version__.split("+")[0]
    observation = NetworkObservation(
        network.name, mode, NetworkOutcome.ran, release=release, simulated=opened.simulated
    )
    try:
        first = _run(network, mode, opened)
    except MpsmithError:
        raise
    except ModuleNotFoundError as error:
        missing = f"needs {network.library or error.name}: {EXTRA if network.library else one_line(error)}"
        return replace(observation, outcome=NetworkOutcome.not_installed, reason=missing)
    except (Exception, SystemExit) as error:
        return replace(observation, outcome=NetworkOutcome.failed, reason=f"building it: {_error_text(error)}")
    observation = replace(observation, called=first.called)
    if first.lowering is not None:
        observation = replace(observation, generated=first.lowering.kernels, breaks=first.lowering.breaks)
    if first.error is not None:
        observation = replace(observation, outcome=NetworkOutcome.failed, reason=_error_text(first.error))
    elif first.called.fell_back:
        with _kernels():
            second = _run(network, mode, opened)
        observation = replace(observation, with_kernels=second.called, kernels_reason=_error_text(second.error))
    return replace(observation, seconds=round(time.perf_counter() - start, 2))


@contextmanager
def _kernels() -> Iterator[None]:
    """Enable what `import mpsmith.kernels` registers."""
    from ...kernels.runtime import registration  # importing it registers what is finished

    registration.enable()
    try:
        yield
    finally:
        registration.disable()


def _error_text(error: BaseException | None) -> str:
    if error is None or isinstance(error, MpsmithError):
        return "" if error is None else str(error)
    return f"{type(error).__name__}: {one_line(error)}"


def _run(network: Network, mode: Mode, opened: TracedDevice) -> _Run:
    """One run. Errors of building the network are raised; an error of running it is part of the result."""
    ready = workload.build(network.builder).to(modes.DEVICE)
    journal = Journal()
    recorder = CallRecorder(lambda: journal, lines=False, always_falls_back=opened.always_falls_back)
    counted, convolutions = Counter(opened.counted_fallbacks()), _convolutions(opened)
    error: BaseException | None = None
    with _compiling(mode) as lowering:
        recorder.start()
        try:
            modes.run(ready, mode)
        except (Exception, SystemExit) as raised:
            error = raised
        finally:
            recorder.stop()
    counted, convolutions = Counter(opened.counted_fallbacks()) - counted, _convolutions(opened) - convolutions
    return _Run(_called(journal, recorder.traits_by_overload, counted, convolutions), error, lowering)


def _convolutions(opened: TracedDevice) -> Counter[str]:
    """The convolutions that the simulated device counted; a real device calls these operators itself."""
    if not opened.simulated:
        return Counter()
    from ...simulator.device import loading

    return Counter({name: calls.native for name, calls in loading.counters().items() if "mps_convolution" in name})


@contextmanager
def _compiling(mode: Mode) -> Iterator[Lowering | None]:
    if mode is not Mode.compile:
        yield None
        return
    with recorded_compilation() as lowering, ready_to_compile():
        yield lowering


def _called(
    journal: Journal, traits_by_overload: dict[str, OverloadTraits], counted: Counter[str], convolutions: Counter[str]
) -> Called:
    """The recorded calls, completed by the counters of the simulated device.

    `counted`: fallbacks, also those inside a kernel or in a thread without a recorder. `convolutions`: those that torch
    calls by operators of other backends. A refused call is not counted.
    """
    native, fell_back = Counter[str](), Counter[str]()
    for row in journal.recording().rows:
        (fell_back if row.kind is CallKind.fallback else native)[row.overload] += row.calls
    for name, traits in traits_by_overload.items():
        if traits.view:
            (fell_back if traits.falls_back else native).setdefault(name, 1)  # views are seen, but not counted
    fell_back |= counted
    for name in _PLACEHOLDERS:
        native.pop(name, None)
    native.update(convolutions)
    return Called(
        native=dict(sorted(native.items())),
        fell_back={name: calls for name, calls in sorted(fell_back.items()) if calls},
        composite=tuple(
            sorted(name for name, traits in traits_by_overload.items() if traits.composite and name not in native)
        ),
    )
