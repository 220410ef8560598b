"""The result of checking a file, and the cache of such results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ...cache import fingerprint, fingerprint_of_code
from ...simulator.clang import BuildCache, Diagnostic
from ..release_files import check_folder
from .diagnostics import has_errors
from .metal_sources import UNCHECKED

# The code that decides a result: a cached result is void as soon as any of it changes.
DECIDING_CODE = (
    "scaffold.proof",
    "scaffold.manifest",
    "scaffold.errors",
    "scaffold.release_files",
    "simulator.objc.apple",
    "simulator.clang",
    "simulator.errors",
    "simulator.objc.comments",
    "simulator.objc.compile_options",
    "simulator.metal",
    "simulator.air",
    "kernels.runtime",
    "audit.releases.surface.native_functions",
    "audit.releases.wheel",
    "registry.torch_release",
    "cache",
    "errors",
    "metal_limits",
)


@dataclass(frozen=True)
class CheckResult:
    """The result of checking one file.

    Attributes:
        path: the file.
        steps: the checks that were done: `types`, `compiled`, `linked`, `registrations`, `metal`, `patch`.
        registers: what the compiled code registers, such as `aten::softshrink.out (MPS)`.
        findings: errors, warnings and notes.
        seconds: how long the check took, when the result was computed.
        cached: whether the result is from the cache.
    """

    path: Path
    steps: tuple[str, ...]
    registers: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    seconds: float
    cached: bool = False

    @property
    def checked(self) -> bool:
        """Whether any check was done that could have rejected the file."""
        return bool(self.steps) or has_errors(self.findings)

    @property
    def complete(self) -> bool:
        """Whether no check was skipped because a compiler is missing."""
        return not any(finding.rule == UNCHECKED for finding in self.findings)

    @property
    def accepted(self) -> bool:
        """Whether the file was checked and nothing is wrong with it."""
        return self.checked and not has_errors(self.findings)

    def as_json(self) -> dict[str, object]:
        """The result as plain data."""
        return {
            "file": str(self.path),
            "accepted": self.accepted,
            "checked": self.checked,
            "cached": self.cached,
            "steps": list(self.steps),
            "registers": list(self.registers),
            "seconds": round(self.seconds, 3),
            "findings": [asdict(finding) for finding in self.findings],
        }


def result_key(path: Path, tools: str, inputs: Iterable[str | bytes]) -> str:
    """The key of a result: the file's path, the identity of the tools, all that was read, and the checking code."""
    return fingerprint(str(path), tools, fingerprint_of_code(*DECIDING_CODE), *inputs)


def cached_result(key: str, path: Path) -> CheckResult | None:
    """The cached result for a key; None if there is none or it is damaged."""
    entry = _cache().find(key, ".json")
    if entry is None:
        return None
    try:
        data = json.loads(entry[1])
        findings = tuple(Diagnostic(**finding) for finding in data["findings"])
        return CheckResult(path, tuple(data["steps"]), tuple(data["registers"]), findings, data["seconds"], cached=True)
    except (ValueError, TypeError, KeyError):
        return None


def cache_result(key: str, result: CheckResult) -> None:
    """Cache a complete result. An incomplete one changes as soon as there is a compiler."""
    if result.complete:
        _cache().store(key, ".json", json.dumps(result.as_json()).encode())


def _cache() -> BuildCache:
    return BuildCache(check_folder() / "results")
