"""A cache of outcomes of compiled calls, which makes repeated audits quick. Its key contains all that decides them.

The key of a case is its name in the audit and a fingerprint of everything that its verdict depends on: the sources of
the auditor and of the simulator, torch's files, the code generator, seed, profile, processor and environment variables.
Only the simulated device is deterministic; on a Mac every call runs again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ...simulator.clang.cache import BuildCache
from ..compiled.verdicts import CompiledOutcome, CompiledVerdict
from ..model.selection import Settings

DAYS = 30
SUFFIX = ".json"
# Their sources, and data, decide about inputs and verdicts.
CODE = ("audit", "simulator")
# Where torch decides what is generated, and what the generated code is compared with.
TORCH_PARTS = ("_decomp", "_dynamo", "_functorch", "_inductor", "_prims", "_refs", "_subclasses", "include/c10", "lib")
VARIABLES = ("MPSMITH_METAL", "PYTORCH_", "TORCH")
# Missing resources may be there the next time.
NOT_KEPT = frozenset(
    {CompiledVerdict.CRASH, CompiledVerdict.TIMEOUT, CompiledVerdict.REFERENCE_FAILED, CompiledVerdict.SKIPPED}
)


class OutcomeCache:
    """Outcomes of compiled calls by the names of their cases.

    Args:
        folder: the folder of the cache.
        decided_by: a fingerprint of what they depend on besides the case.
    """

    def __init__(self, folder: Path, decided_by: str) -> None:
        self._kept = BuildCache(folder)
        self._decided_by = decided_by

    def outcome_of(self, label: str, judge: Callable[[], CompiledOutcome]) -> CompiledOutcome:
        """The cached outcome of a case, or else what `judge` returns now."""
        key = fingerprint(self._decided_by, label)
        cached = self._kept.find(key, SUFFIX)
        if cached is not None:
            with contextlib.suppress(ValueError):
                return _adapter().validate_python(json.loads(cached[1]))
        outcome = judge()
        if outcome.verdict not in NOT_KEPT:
            with contextlib.suppress(OSError):  # with a full disk only the next audit takes longer
                self._kept.store(key, SUFFIX, _as_json(outcome))
        return outcome


def outcome_cache(settings: Settings, environment: Mapping[str, Any]) -> OutcomeCache | None:
    """The cache for an audit with these settings; None if outcomes may vary.

    Args:
        environment: the environment of the audit, as in its store.
    """
    if not environment["simulated"] or settings.faults or settings.imports:
        return None
    chosen = (settings.seed, settings.samples.value, settings.large)
    variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
    depends_on = json.dumps([chosen, dict(environment), variables], sort_keys=True, default=str)
    folder = cache_folder() / "compiled"
    outcomes = OutcomeCache(folder, fingerprint(depends_on, fingerprint_of_code(*CODE), _torch_files()))
    with contextlib.suppress(OSError):
        BuildCache(folder).discard_old(DAYS)
    return outcomes


def _torch_files() -> str:
    """A fingerprint of names, sizes and modification times of torch's files, which a user may edit."""
    import torch

    root = Path(torch.__file__).parent
    files = sorted(path for part in TORCH_PARTS for path in (root / part).rglob("*") if path.suffix != ".pyc")
    stats = [(str(path.relative_to(root)), path.stat()) for path in files if path.is_file()]
    return fingerprint(*(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats))


def _as_json(outcome: CompiledOutcome) -> bytes:
    """The outcome as JSON, without the source if it is right. pydantic's own JSON cannot hold an infinite error."""
    kept = replace(outcome, source="") if outcome.verdict.is_right else outcome
    return json.dumps(_adapter().dump_python(kept, mode="json")).encode()


@cache
def _adapter() -> TypeAdapter[CompiledOutcome]:
    return TypeAdapter(CompiledOutcome)
