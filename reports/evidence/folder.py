"""Where added evidence lies, beside the registry in use, and what its files are called."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from ...registry.folder import PACKAGED, registry_folder
from ...registry.writing import writable_folder
from .schema import EvidenceFile

NAME = "evidence"
SUFFIX = ".json.gz"


def evidence_folder(registry: Path | None = None) -> Path:
    """The folder for evidence that belongs to a registry: beside the operators in a clone, inside of any other."""
    return _of(registry_folder(registry))


def writable_evidence_folder(registry: Path | None = None) -> Path:
    """The same for writing: of an installed package it is in the current folder. Raises RegistryError."""
    return _of(writable_folder(registry))


def _of(operators: Path) -> Path:
    return operators.parent / NAME if operators == PACKAGED else operators / NAME


def evidence_files(folder: Path) -> list[Path]:
    """The files of evidence in a folder, by name; none where there is no such folder."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def file_name(evidence: EvidenceFile, contents: bytes) -> str:
    """A name that says what it is evidence of, made of plain letters: simulated-…, or the chip; macOS; torch."""
    machine = evidence.machine
    parts = ["simulated"] if evidence.simulated else []
    parts += [machine.chip, f"{machine.system}-{machine.release}", f"torch-{machine.torch}", evidence.day]
    digest = hashlib.sha256(contents).hexdigest()[:8]
    return "_".join([*_plain(parts), digest]) + SUFFIX


def _plain(parts: list[str]) -> Iterator[str]:
    for part in parts:
        yield re.sub(r"[^a-z0-9.+]+", "-", part.lower()).strip("-.")[:40] or "unknown"
