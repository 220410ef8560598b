"""What verifying showed, as the registry takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ...registry.model import Device, Entry, Evidence, Status, in_dtype_order
from ..runtime import catalog, shader
from ..runtime.registration import registered
from .checks import Case, Failure, cases, run
from .layouts import LAYOUTS, Layout
from .subjects import SUBJECTS

_DIGEST_LENGTH = 16


@dataclass
class FamilyResult:
    """What the cases of one family showed.

    Attributes:
        family: its name.
        operators: the operators of the subjects that ran with our kernels.
        cases: how many cases ran.
        failures: those that did not come out right.
        native: the subjects that were left out, since the running torch has kernels of its own for all they call.
    """

    family: str
    operators: set[str] = field(default_factory=set)
    cases: int = 0
    failures: list[Failure] = field(default_factory=list)
    native: list[str] = field(default_factory=list)
    checks: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        """Whether anything ran and nothing failed: no case at all is no pass."""
        return self.cases > 0 and not self.failures


def verify(family: str, layouts: Sequence[Layout] = LAYOUTS) -> FamilyResult:
    """Run every case of a family whose kernels are registered (`enable` them first).

    Raises UnknownKernelError for a name that is no family.
    """
    catalog.family(family)
    result = FamilyResult(family)
    answered = {overload.split(".")[0] for overload in registered()}
    for subject in SUBJECTS[family]:
        if not answered.intersection(subject.operators):
            result.native.append(subject.name)
            continue
        result.operators.update(answered.intersection(subject.operators))
        for case, failure in _outcomes(cases(subject, layouts)):
            result.cases += 1
            result.checks.add(case.check)
            result.dtypes.add(str(case.dtype).removeprefix("torch."))
            if failure is not None:
                result.failures.append(failure)
    return result


def _outcomes(all_cases: Iterator[Case]) -> Iterator[tuple[Case, Failure | None]]:
    for case in all_cases:
        yield case, run(case)


def source_files(family: str) -> list[Path]:
    """The files that decide what a family computes: its module, its Metal source and what that includes."""
    module = catalog.folder_of(family) / f"{family}.py"
    return [module, *shader.sources(module.with_suffix(".metal"))]


def source_digest(family: str) -> str:
    """A digest of these files, so that evidence for older ones can be told."""
    digest = hashlib.sha256()
    for path in source_files(family):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def record(folder: Path | None, results: Sequence[FamilyResult], *, simulated: bool) -> list[Entry]:
    """Write the evidence of families that passed into the registry; entries are made where there are none.

    On the simulated device a kernel is implemented, never verified: what ran there is no evidence about a Mac.
    Operators that torch has kernels for, of which ours answer some calls, are left out there: the simulated device
    computes those on the CPU and cannot show what is wrong with them. A status beyond the one that follows stays.
    Returns the entries. Raises RegistryError where the registry refuses.
    """
    from ...registry.files import edit, load, record_evidence

    device: Device = "simulated" if simulated else "mps"
    known = load(folder)
    written: list[Entry] = []
    for result in results:
        if not result.passed:
            continue
        evidence = Evidence(
            torch=torch.__version__,
            source=source_digest(result.family),
            checks=sorted(result.checks),
            dtypes=in_dtype_order(sorted(result.dtypes)),
        )
        for operator in sorted(result.operators - (_overridden(result.family) if simulated else set())):
            current = known[operator].status if operator in known else None
            status = _status_after(current, simulated)
            edit(folder, operator, {"kernel": result.family}, add=True)
            written.append(record_evidence(folder, operator, device, evidence, status=status))
    return written


def _overridden(family: str) -> set[str]:
    """The operators of a family that are replaced for some calls only."""
    return {kernel.operator for kernel in catalog.family(family) if kernel.applies is not None}


def _status_after(current: Status | None, simulated: bool) -> Status:
    """What a pass makes of a status: it moves on, and never back."""
    if current in (Status.verified, Status.upstreamed):
        return current
    return Status.implemented if simulated else Status.verified
