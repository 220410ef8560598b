"""Records which operators the calls of torch consist of, on the simulated device: the data of `compositions`.

A composite operator runs on mps if the operators inside it do. Calling it shows which those are: the profiler hooks of
the dispatcher report every call. A call inside a kernel is not a part.

`python -m mpsmith.audit.answers.recording` calls torch's OpInfos, its ModuleInfos and the recorded calls of every
composite overload, and writes the file.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from .compositions import FILE, Composition, write

if TYPE_CHECKING:
    from ..model.case import CaseSource
    from ..model.group import GroupKey
    from ..releases.surface.overloads import Surface

# Calls of one operator and variant, spread over the first samples: enough to see its branches.
_MOST_CASES = 24
_MOST_SAMPLES = 400


@dataclass(frozen=True)
class _OpenCall:
    """A call that is not over. `end` is in nanoseconds, None for the outermost; `parts` is None inside a kernel."""

    end: int | None
    parts: set[str] | None
    is_kernel: bool


def _add(part: str, open_calls: Sequence[_OpenCall]) -> None:
    """Add a part to each open call around it, from the innermost out to the nearest kernel."""
    for call in reversed(open_calls):
        if call.parts is not None:
            call.parts.add(part)
        if call.is_kernel:
            return


class Recorder:
    """Counts, for each name, the calls and the overloads with a kernel inside them."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface.by_name
        self._calls: Counter[str] = Counter()
        self._parts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def record(self, name: str, call: Callable[[], Any]) -> None:
        """Call once, and count its parts for `name` and for every composite overload on the way.

        Raises what the call raises; it then counts nothing.
        """
        inside: set[str] = set()
        composites: list[tuple[str, set[str]]] = [(name, inside)]
        open_calls = [_OpenCall(None, inside, is_kernel=False)]
        for start, end, overload in _events(call):
            while open_calls[-1].end is not None and open_calls[-1].end <= start:
                open_calls.pop()
            if overload not in self._surface or open_calls[-1].parts is None:
                continue
            short, declared = overload.removeprefix("aten::"), self._surface[overload]
            is_kernel = not declared.dispatch.is_composite
            if is_kernel:
                _add(short, open_calls)
            own: set[str] | None = None
            if declared.declared.is_composite:  # one that C++ sends to the CPU has parts in other releases
                own = set()
                composites.append((short, own))
            open_calls.append(_OpenCall(end, own, is_kernel))
        for label, parts in composites:
            self._calls[label] += 1
            self._parts[label].update(parts)

    def compositions(self) -> dict[str, Composition]:
        """The recorded overloads and counts, by name."""
        return {name: Composition(calls, dict(self._parts[name])) for name, calls in self._calls.items()}


def _events(call: Callable[[], Any]) -> list[tuple[int, int, str]]:
    """The operator calls while `call` runs: begin and end in nanoseconds, and the overload; callers first."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.autograd.profiler import profile

    config = _ExperimentalConfig(capture_overload_names=True)
    profiler = profile(use_cpu=True, use_kineto=True, experimental_config=config)
    with profiler:
        call()
    results = profiler.kineto_results
    seen = []
    for event in results.events() if results else ():
        name, overload = event.name(), event.overload_name()
        if name.startswith("aten::"):
            full = f"{name}.{overload}" if overload else name
            seen.append((event.start_ns(), event.start_ns() + event.duration_ns(), full))
    return sorted(seen, key=lambda event: (event[0], -event[1]))


def _first_dtypes(source: CaseSource, wanted: Callable[[str], bool]) -> Iterable[GroupKey]:
    """One group for each operator and variant of a source, in the first dtype of DTYPES that it has."""
    from ..model.selection import dtype_position

    first: dict[tuple[str, str], GroupKey] = {}
    for key in source.groups():
        place = (key.operator, key.variant)
        if wanted(key.operator) and (
            place not in first or dtype_position(key.dtype) < dtype_position(first[place].dtype)
        ):
            first[place] = key
    return first.values()


def record_sources(recorder: Recorder, sources: Iterable[tuple[CaseSource, Callable[[str], bool]]]) -> int:
    """Record the first calls of every operator of the sources; returns how many raised and were left out.

    With each source comes the predicate that says which of its operators are wanted.
    """
    from ..judging.transfer import move
    from ..model.case import seed_generators
    from ..model.selection import Samples

    refused = 0
    for source, wanted in sources:
        for key in _first_dtypes(source, wanted):
            seed_generators(0, key.label)
            try:
                samples = list(islice(source.cases(key, Samples.DEFAULT), _MOST_SAMPLES))
            except Exception:
                refused += 1
                continue
            for case in samples[:: 1 + len(samples) // _MOST_CASES]:
                if case.skipped:
                    continue
                try:
                    args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
                    with _default_device(case.default_device):
                        recorder.record(key.operator, lambda: case.call(*args, **kwargs))  # noqa: B023
                except Exception:
                    refused += 1
    return refused


@contextmanager
def _default_device(on_mps: bool) -> Any:
    """Make mps the default device, for a call that names no device and has no tensor."""
    import torch

    if not on_mps:
        yield
        return
    with torch.device("mps"):
        yield


def main() -> None:
    """Record everything, and write the file."""
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    warnings.simplefilter("ignore")
    from ...simulator.opening import DeviceKind, open_device
    from ..cases.calls.cpu_kernels import register
    from ..cases.sources.modules import ModuleSource
    from ..cases.sources.opinfo import OpInfoSource
    from ..cases.sources.schema import SchemaSource
    from ..releases.surface import installed_surface
    from ..releases.surface.profiles import coverage_profile

    open_device(DeviceKind.SIMULATED, coverage_profile)
    register()
    surface = installed_surface()
    composite = {name for name, overload in surface.by_name.items() if overload.dispatch.is_composite}
    recorder = Recorder(surface)
    refused = record_sources(
        recorder,
        (
            (OpInfoSource(), lambda name: True),
            (ModuleSource(), lambda name: True),
            (SchemaSource(), lambda name: f"aten::{name}" in composite),
        ),
    )
    recorded = recorder.compositions()
    write(recorded)
    print(f"{FILE}: {len(recorded)} names; {refused} calls raised and were left out")


if __name__ == "__main__":
    main()
