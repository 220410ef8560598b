"""The results of verification, in the registry's form."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch

from ...registry.model import Device, Entry, Evidence, Status, in_dtype_order
from ..runtime import catalog, shader
from .verify import FamilyResult

_DIGEST_LENGTH = 16
# Modules of a family that have no part in what it computes.
_ABOUT_A_FAMILY = ("__init__.py", "cases.py")


def source_files(family: str) -> list[Path]:
    """The files that determine what a family computes: its modules, its Metal source and the files included there."""
    folder = catalog.folder_of(family)
    module = folder / f"{family}.py"
    others = sorted(path for path in folder.glob("*.py") if path.name not in (module.name, *_ABOUT_A_FAMILY))
    return [module, *others, *shader.sources(module.with_suffix(".metal"))]


def source_digest(family: str) -> str:
    """A digest of these files, to recognize evidence for an older version of them."""
    digest = hashlib.sha256()
    for path in source_files(family):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def record(folder: Path | None, results: Sequence[FamilyResult], *, simulated: bool) -> list[Entry]:
    """Write the evidence of families that passed into the registry; missing entries are created.

    On the simulated device a kernel becomes implemented, never verified, because nothing there is evidence about a Mac.
    Overrides are left out there: the simulated device computes torch's own kernels on the CPU, and cannot show what is
    wrong with them. A status that is already further is kept.
    Returns the entries. Raises RegistryError if the registry refuses.
    """
    from ...registry.files import VerifiedKernel, load, record_evidence

    device: Device = "simulated" if simulated else "mps"
    registry = load(folder)
    verified: dict[str, VerifiedKernel] = {}
    for result in results:
        if not result.passed:
            continue
        evidence = Evidence(
            torch=torch.__version__,
            source=source_digest(result.family),
            checks=sorted(result.checks),
            dtypes=in_dtype_order(sorted(result.dtypes)),
        )
        for operator in sorted(result.operators - (catalog.overridden(result.family) if simulated else set())):
            current = registry[operator].status if operator in registry else None
            verified[operator] = VerifiedKernel(result.family, evidence, _status_after(current, simulated))
    return list(record_evidence(folder, device, verified).values()) if verified else []


def _status_after(current: Status | None, simulated: bool) -> Status:
    """The status after a pass; it never goes back."""
    if current in (Status.verified, Status.upstreamed):
        return current
    return Status.implemented if simulated else Status.verified
