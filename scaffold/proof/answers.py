"""What was found out about a file, and the answers that are kept until something changes that decided them."""

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

# Whose code decides what is wrong with a file: an answer is kept only until any of it changes.
JUDGES = (
    "scaffold.proof",
    "scaffold.manifest",
    "scaffold.errors",
    "scaffold.release_files",
    "simulator.objc.apple",
    "simulator.clang",
    "simulator.errors",
    "simulator.objc.comments",
    "simulator.metal",
    "kernels.runtime",
    "audit.releases.surface.native_functions",
    "audit.releases.wheel",
    "registry.torch_release",
    "cache",
    "errors",
    "metal_limits",
)


@dataclass(frozen=True)
class Answer:
    """What was found out about one file.

    Attributes:
        path: the file.
        steps: what was done: `types`, `compiled`, `linked`, `registrations`, `metal`, `patch`.
        registers: what the compiled code registers, such as `aten::softshrink.out (MPS)`.
        findings: what is wrong, and what is worth knowing.
        seconds: how long it took; of a cached answer, how long it had taken.
        cached: whether the answer was there already.
    """

    path: Path
    steps: tuple[str, ...]
    registers: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    seconds: float
    cached: bool = False

    @property
    def checked(self) -> bool:
        """Whether anything was done that could have refused the file."""
        return bool(self.steps) or has_errors(self.findings)

    @property
    def complete(self) -> bool:
        """Whether nothing had to be left out for want of a compiler."""
        return not any(finding.rule == UNCHECKED for finding in self.findings)

    @property
    def accepted(self) -> bool:
        """Whether the file was checked and nothing is wrong with it."""
        return self.checked and not has_errors(self.findings)

    def as_json(self) -> dict[str, object]:
        """The answer as plain data."""
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


def answer_key(path: Path, tools: str, decided_by: Iterable[str | bytes]) -> str:
    """What an answer hangs on: the file, the identity of the tools, all else that was read, the code that judges."""
    return fingerprint(str(path), tools, fingerprint_of_code(*JUDGES), *decided_by)


def kept_answer(key: str, path: Path) -> Answer | None:
    """The answer that was kept under a key; None when there is none, or when it is damaged."""
    kept = _answers().find(key, ".json")
    if kept is None:
        return None
    try:
        data = json.loads(kept[1])
        findings = tuple(Diagnostic(**finding) for finding in data["findings"])
        return Answer(path, tuple(data["steps"]), tuple(data["registers"]), findings, data["seconds"], cached=True)
    except (ValueError, TypeError, KeyError):
        return None


def keep(key: str, answer: Answer) -> None:
    """Keep an answer; not one that leaves something unchecked, which is another one as soon as there is a compiler."""
    if answer.complete:
        _answers().store(key, ".json", json.dumps(answer.as_json()).encode())


def _answers() -> BuildCache:
    return BuildCache(check_folder() / "answers")
