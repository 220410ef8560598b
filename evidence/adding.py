"""Takes a file of evidence in: into the folder of evidence, and what a real device showed into the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..registry.files import edit, load, record_evidence
from ..registry.model import Evidence, Status
from ..registry.sync import SyncReport, sync
from ..registry.writing import exclusive, writable_folder
from .checking import checked
from .errors import EvidenceError
from .folder import evidence_files, file_name, writable_evidence_folder
from .measured import real_measurements
from .schema import EvidenceFile, KernelRow


@dataclass(frozen=True)
class Added:
    """What taking a file in did.

    Attributes:
        path: where it lies now.
        new: whether it was not there before.
        evidence: what it says.
        synced: what became of the registry's measurements; None for simulated evidence, which changes none.
        verified: the operators whose kernels a real device verified.
        not_verified: of families that passed there, why nothing follows.
    """

    path: Path
    new: bool
    evidence: EvidenceFile
    synced: SyncReport | None = None
    verified: tuple[str, ...] = ()
    not_verified: dict[str, str] = field(default_factory=dict)


def add(path: Path, registry: Path | None = None) -> Added:
    """Check a file, copy it into the folder of evidence, and bring the registry up to date with it.

    Evidence of the simulated device is kept and shown, and changes nothing in the registry.
    Raises EvidenceError where it is refused, RegistryError where the registry cannot be written: then nothing is added.
    """
    evidence = checked(path)
    load(registry_in_use(registry))  # one with problems refuses before anything is copied
    kept, new = _kept(path, evidence, writable_evidence_folder(registry))
    if evidence.simulated:
        return Added(kept, new, evidence)
    synced = sync(registry, real_measurements(added_evidence(kept.parent)))
    verified, not_verified = _verified(evidence, registry)
    return Added(kept, new, evidence, synced, tuple(verified), not_verified)


def registry_in_use(registry: Path | None) -> Path | None:
    """The folder for writing, made where it does not exist yet, so that the first evidence can begin a registry."""
    folder = writable_folder(registry)
    with exclusive(folder):
        return folder


def added_evidence(folder: Path) -> Iterator[EvidenceFile]:
    """All evidence of a folder, each checked. Raises EvidenceError that names a file that is refused."""
    for path in evidence_files(folder):
        yield checked(path)


def _kept(path: Path, evidence: EvidenceFile, folder: Path) -> tuple[Path, bool]:
    contents = path.read_bytes()
    kept = folder / file_name(evidence, contents)
    if kept.exists():
        return kept, False
    temporary = kept.with_name(f".{kept.name}.tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(contents)
        temporary.replace(kept)
    except OSError as error:
        raise EvidenceError(f"{folder}: {error.strerror or error} (choose another with --registry)") from error
    return kept, True


def _verified(evidence: EvidenceFile, registry: Path | None) -> tuple[list[str], dict[str, str]]:
    """Record the families that passed on a real device with the sources that are here."""
    from ..kernels.runtime import catalog
    from ..kernels.verification.evidence import source_digest

    verified: list[str] = []
    refused: dict[str, str] = {}
    for row in evidence.kernels:
        if not row.passed:
            continue
        if row.family not in catalog.families():
            refused[row.family] = "this mpsmith has no such kernels"
        elif source_digest(row.family) != row.source:
            refused[row.family] = "verified with other sources than those here"
        elif strangers := set(row.operators) - {kernel.operator for kernel in catalog.family(row.family)}:
            refused[row.family] = f"has no kernel of {', '.join(sorted(strangers))}"
        else:
            verified += _recorded(row, evidence, registry)
    return sorted(verified), refused


def _recorded(row: KernelRow, evidence: EvidenceFile, registry: Path | None) -> Iterator[str]:
    known = load(registry)
    found = Evidence(torch=evidence.machine.torch, source=row.source, checks=row.checks, dtypes=row.dtypes)
    for operator in row.operators:
        current = known[operator].status if operator in known else None
        status = current if current is Status.upstreamed else Status.verified
        edit(registry, operator, {"kernel": row.family}, add=True)
        record_evidence(registry, operator, "mps", found, status=status)
        yield operator
