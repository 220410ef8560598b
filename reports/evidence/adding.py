"""Takes files of evidence in: into the folder of evidence, and what real devices showed into the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from ...registry.files import Registry, VerifiedKernel, load, record_evidence
from ...registry.model import Evidence, Status
from ...registry.sync import SyncReport, sync
from ...registry.writing import exclusive, writable_folder
from .checking import checked
from .devices import FindingsOfDevices
from .errors import EvidenceError
from .folder import evidence_files, file_name, writable_evidence_folder
from .measured import real_measurements
from .reading import without_collection
from .schema import EvidenceFile, KernelRow


@dataclass(frozen=True)
class AddedFile:
    """One file of evidence that was taken in.

    Attributes:
        path: where it lies now.
        new: whether it was not there before.
        simulated: whether the device was.
    """

    path: Path
    new: bool
    simulated: bool


@dataclass(frozen=True)
class Added:
    """What taking files in did.

    Attributes:
        files: where they lie now.
        synced: what became of the registry's measurements; None where all are simulated, which changes none.
        verified: the operators whose kernels a real device verified.
        not_verified: of families that passed there, why nothing follows.
    """

    files: tuple[AddedFile, ...]
    synced: SyncReport | None = None
    verified: tuple[str, ...] = ()
    not_verified: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Checked:
    """What is needed of a file that is to be copied, once it has been checked."""

    name: str
    contents: bytes
    simulated: bool
    collected: datetime
    torch: str
    passed: tuple[KernelRow, ...]


def add(paths: Sequence[Path], registry: Path | None = None) -> Added:
    """Check files, copy them into the folder of evidence, and bring the registry up to date with all that lies there.

    Evidence of the simulated device is kept and shown, and changes nothing in the registry.
    Raises EvidenceError where one is refused, RegistryError where the registry cannot be written: then none is added.
    """
    found = FindingsOfDevices()
    with without_collection():
        files = [_checked(path, found) for path in paths]
        folder = writable_evidence_folder(registry)
        names = {each.name for each in files}
        for evidence in _all_checked(path for path in evidence_files(folder) if path.name not in names):
            found.add(evidence)
    load(registry_in_use(registry))  # one with problems refuses before anything is copied
    added = tuple(_kept(each, folder) for each in files)
    if all(each.simulated for each in files):
        return Added(added)
    synced = sync(registry, real_measurements(found.findings()))
    verified, not_verified = _verified(files, load(registry)) if any(each.passed for each in files) else ({}, {})
    if verified:
        record_evidence(registry, "mps", verified)
    return Added(added, synced, tuple(sorted(verified)), not_verified)


def registry_in_use(registry: Path | None) -> Path | None:
    """The folder for writing, made where it does not exist yet, so that the first evidence can begin a registry."""
    folder = writable_folder(registry)
    with exclusive(folder):
        return folder


def added_evidence(folder: Path) -> Iterator[EvidenceFile]:
    """All evidence of a folder, each checked. Raises EvidenceError that names a file that is refused."""
    return _all_checked(evidence_files(folder))


def _all_checked(paths: Iterable[Path]) -> Iterator[EvidenceFile]:
    for path in paths:
        yield checked(path)


def _checked(path: Path, found: FindingsOfDevices) -> _Checked:
    evidence = checked(path)
    found.add(evidence)
    contents = path.read_bytes()
    passed = () if evidence.simulated else tuple(row for row in evidence.kernels if row.passed)
    return _Checked(
        name=file_name(evidence, contents),
        contents=contents,
        simulated=evidence.simulated,
        collected=evidence.collected,
        torch=evidence.machine.torch,
        passed=passed,
    )


def _kept(file: _Checked, folder: Path) -> AddedFile:
    kept = folder / file.name
    if kept.exists():
        return AddedFile(kept, new=False, simulated=file.simulated)
    temporary = kept.with_name(f".{kept.name}.tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(file.contents)
        temporary.replace(kept)
    except OSError as error:
        raise EvidenceError(f"{folder}: {error.strerror or error} (choose another with MPSMITH_REGISTRY)") from error
    return AddedFile(kept, new=True, simulated=file.simulated)


def _verified(files: Iterable[_Checked], known: Registry) -> tuple[dict[str, VerifiedKernel], dict[str, str]]:
    """What the families that passed on real devices make of the operators here, and why others make nothing of them.

    Where several files verify a kernel, the newest is its evidence.
    """
    from ...kernels.verification.evidence import source_digest

    digest_here = cache(source_digest)
    verified: dict[str, VerifiedKernel] = {}
    refused: dict[str, str] = {}
    for file in sorted(files, key=lambda each: each.collected):
        for row in file.passed:
            if why := _why_not(row, digest_here):
                refused[row.family] = why
                continue
            evidence = Evidence(torch=file.torch, source=row.source, checks=row.checks, dtypes=row.dtypes)
            for operator in row.operators:
                current = known[operator].status if operator in known else None
                status = current if current is Status.upstreamed else Status.verified
                verified[operator] = VerifiedKernel(row.family, evidence, status)
    return verified, refused


def _why_not(row: KernelRow, digest_here: Callable[[str], str]) -> str:
    """Why nothing here follows from a family that passed there; "" where something does."""
    from ...kernels.runtime import catalog

    if row.family not in catalog.families():
        return "this mpsmith has no such kernels"
    if digest_here(row.family) != row.source:
        return "verified with other sources than those here"
    if strangers := set(row.operators) - {kernel.operator for kernel in catalog.family(row.family)}:
        return f"has no kernel of {', '.join(sorted(strangers))}"
    return ""
