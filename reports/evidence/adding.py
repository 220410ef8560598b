"""Adds evidence files: copies them into the evidence folder, and brings the registry up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ...registry.files import Registry, VerifiedKernel, load, record_evidence
from ...registry.model import Evidence, Status
from ...registry.sync import SyncReport, sync
from ...registry.writing import exclusive, writable_folder
from .checking import checked
from .devices import findings_by_device, real_measurements
from .files import EvidenceError, evidence_files, file_name, replace_file, writable_evidence_folder
from .schema import EvidenceFile, KernelRow


@dataclass(frozen=True)
class AddedFile:
    """One added file: its path in the folder, whether it is new there, and whether its device was simulated."""

    path: Path
    new: bool
    simulated: bool


@dataclass(frozen=True)
class Added:
    """The result of adding files.

    Attributes:
        files: the files in the folder.
        synced: the changes of the registry's measurements; None if all files are simulated, which change none.
        verified: the operators whose kernels a real device verified.
        not_verified: families that passed there but verify nothing here, each with the reason.
    """

    files: tuple[AddedFile, ...]
    synced: SyncReport | None = None
    verified: tuple[str, ...] = ()
    not_verified: dict[str, str] = field(default_factory=dict)


def add(paths: Sequence[Path], registry: Path | None = None) -> Added:
    """Check files, copy them into the evidence folder, and sync the registry with all real devices' evidence there.

    Evidence of the simulated device is kept and changes nothing in the registry.
    Raises EvidenceError if one is refused, RegistryError where the registry cannot be written: then none is added.
    """
    files = {path: checked(path) for path in paths}
    contents = {path: path.read_bytes() for path in paths}
    names = {path: file_name(file, contents[path]) for path, file in files.items()}
    folder = writable_evidence_folder(registry)
    others = [checked(path) for path in evidence_files(folder) if path.name not in names.values()]
    _load_for_writing(registry)  # a registry with problems refuses before anything is copied
    added = tuple(_copied(folder / names[path], contents[path], file.simulated) for path, file in files.items())
    real = [file for file in files.values() if not file.simulated]
    if not real:
        return Added(added)
    synced = sync(registry, real_measurements(findings_by_device([*files.values(), *others])))
    verified, refused = _verified_kernels(real, load(registry))
    if verified:
        record_evidence(registry, "mps", verified)
    return Added(added, synced, tuple(sorted(verified)), refused)


def added_evidence(folder: Path) -> Iterator[EvidenceFile]:
    """All evidence of a folder, each file checked. Raises EvidenceError that names a file that is refused."""
    return map(checked, evidence_files(folder))


def _load_for_writing(registry: Path | None) -> Registry:
    """The registry, whose folder is made if necessary, so that evidence can begin one."""
    folder = writable_folder(registry)
    with exclusive(folder):
        return load(folder)


def _copied(path: Path, contents: bytes, simulated: bool) -> AddedFile:
    if path.exists():
        return AddedFile(path, new=False, simulated=simulated)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, contents)
    except OSError as error:
        reason = error.strerror or error
        raise EvidenceError(f"{path.parent}: {reason} (choose another with MPSMITH_REGISTRY)") from error
    return AddedFile(path, new=True, simulated=simulated)


def _verified_kernels(
    files: Sequence[EvidenceFile], registry: Registry
) -> tuple[Mapping[str, VerifiedKernel], dict[str, str]]:
    """Operators whose kernels are verified here, and the reason for each family that verifies nothing here.

    Families must have passed on a real device. If several files verify a kernel, the newest is its evidence.
    """
    from ...kernels.verification.evidence import source_digest

    digest_here = cache(source_digest)
    verified: dict[str, VerifiedKernel] = {}
    refused: dict[str, str] = {}
    for file in sorted(files, key=lambda evidence_file: evidence_file.collected):
        for row in (row for row in file.kernels if row.passed):
            if reason := _mismatch(row, digest_here):
                refused[row.family] = reason
                continue
            evidence = Evidence(torch=file.machine.torch, source=row.source, checks=row.checks, dtypes=row.dtypes)
            for operator in row.operators:
                current = registry[operator].status if operator in registry else None
                status = current if current is Status.upstreamed else Status.verified
                verified[operator] = VerifiedKernel(row.family, evidence, status)
    return verified, refused


def _mismatch(row: KernelRow, digest_here: Callable[[str], str]) -> str:
    """Why a family that passed there verifies nothing here; "" if it does."""
    from ...kernels.runtime import catalog

    if row.family not in catalog.families():
        return "this mpsmith has no such kernels"
    if digest_here(row.family) != row.source:
        return "verified with other sources than those here"
    if unknown := set(row.operators) - {kernel.operator for kernel in catalog.family(row.family)}:
        return f"has no kernel of {', '.join(sorted(unknown))}"
    return ""
