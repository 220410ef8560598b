"""Which entries of the audit's sources call which overloads. This decides which entries are audited for a fault.

To find out, a small audit without faults runs a few cases of each entry in one kind of dtype. The result is cached.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ...simulator.opening import DeviceKind
from ..cases.sources import case_sources
from ..findings.attribution import is_named_after
from ..model.group import GroupKey
from ..model.selection import Samples, Settings
from ..releases.surface.native_functions import installed_release
from ..running.runner import run_audit
from ..store.store import Store
from .planted import PlantedFault

# The code that decides which entries there are and what they call.
DECIDED_BY = (
    "audit.cases.calls",
    "audit.cases.sources.opinfo",
    "audit.cases.sources.modules",
    "audit.cases.sources.schema",
)
SOURCES = ("opinfo", "modules", "schema")
# Tried in this order, each for the entries without a group so far: some take no floating tensors.
DTYPES = (("float32",), ("int64", "complex64", "bool"))
# The number of entries of other operators that are audited for a fault: those that call the fewest other overloads.
CALLERS = 6


@dataclass(frozen=True)
class Reach:
    """The overloads that each entry calls, by the name of the entry."""

    calls: Mapping[str, frozenset[str]]

    def entries(self, planted: PlantedFault) -> tuple[str, ...]:
        """The entries to audit for a fault: those of its operator, and the callers of its overload with fewest calls.

        A fault shows in every entry that calls its overload, but an entry with hundreds of other calls takes long.
        """
        overload = planted.fault.overload
        own = [name for name in self.calls if is_named_after(name, overload)]
        callers = [name for name, called in self.calls.items() if overload in called and name not in own]
        callers.sort(key=lambda name: (len(self.calls[name]), name))
        return tuple(sorted({*own, *callers[:CALLERS]}))


def reach_of(workers: int, say: Callable[[str], None]) -> Reach:
    """The overloads that the entries of all sources call on the simulated device.

    Raises MpsmithError without the simulated device.
    """
    key = fingerprint(installed_release(), fingerprint_of_code(*DECIDED_BY), *itertools.chain.from_iterable(DTYPES))
    path = cache_folder() / "self-test" / f"reach-{key[:16]}.json"
    try:
        return Reach({name: frozenset(called) for name, called in json.loads(path.read_text()).items()})
    except (OSError, ValueError):
        pass
    say("self-test: recording which operators call which (once; kept in the cache)")
    calls = _called_overloads(workers)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({name: sorted(called) for name, called in sorted(calls.items())}))
    temporary.replace(path)
    return Reach({name: frozenset(called) for name, called in calls.items()})


def _called_overloads(workers: int) -> dict[str, set[str]]:
    calls: dict[str, set[str]] = {}
    for dtypes in DTYPES:
        offered = {key.operator for key in _groups() if key.dtype in dtypes}
        left = tuple(sorted(offered - calls.keys()))
        if left:
            calls.update(_called_by(left if calls else (), dtypes, workers))  # () selects every entry
    return calls


def _groups() -> Iterator[GroupKey]:
    sources = case_sources(())
    return itertools.chain.from_iterable(sources[name].groups() for name in SOURCES)


def _called_by(entries: tuple[str, ...], dtypes: tuple[str, ...], workers: int) -> dict[str, set[str]]:
    settings = Settings(
        samples=Samples.QUICK, dtypes=dtypes, ops=entries, sources=SOURCES, device=DeviceKind.SIMULATED, workers=workers
    )
    with tempfile.TemporaryDirectory(prefix="mpsmith-self-test-") as folder:
        path = Path(folder) / "reach.sqlite"
        # torch.mps itself is not probed, because dtypes are selected.
        run = run_audit(settings, path, resume=False, say=lambda text: None)
        calls: dict[str, set[str]] = {}
        with Store.open(path) as store:
            for group in store.groups(run.id):
                calls.setdefault(group.key.operator, set())
            for key, called in store.called_overloads(run.id).items():
                calls[key.operator].update(called)
    return calls
