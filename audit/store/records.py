"""Records of the results store, as plain data. Imports no torch and no SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..cases.covering.pairs import Levels
from ..compiled.verdicts import CompiledOutcome
from ..model.group import GroupKey
from ..model.verdicts import AtFault, CaseVerdict, Grade, Outcome, UlpSensitivity, grade_of_device

STRICT = "strict"


def host_code_in(environment: Mapping[str, Any]) -> str:
    """The release or folder of PyTorch's host code in a run's environment, with the macOS that it saw; "" for none."""
    facts = environment.get("host_code")
    return f"{facts['source']} (macOS {facts['macos']})" if facts else ""


@dataclass(frozen=True)
class Run:
    """One audit: its times, settings and environment."""

    id: int
    started: str
    finished: str | None
    settings: dict[str, Any]
    environment: dict[str, Any]

    @property
    def simulated(self) -> bool:
        """Whether the mps device was the simulated one, so that nothing in the run is evidence about a Mac."""
        return bool(self.environment.get("simulated", False))

    @property
    def compiled(self) -> bool:
        """Whether every call ran under torch.compile; such a run says nothing about eager calls."""
        return bool(self.settings.get("compiled"))

    @property
    def host_code(self) -> str:
        """The release or folder of PyTorch's host code that ran, with the version of macOS that it saw; "" for none."""
        return host_code_in(self.environment)

    @property
    def audited_code(self) -> str:
        """The host code that ran, or the release whose shipped kernels did."""
        return self.host_code or str(self.environment.get("shipped"))

    @property
    def grade(self) -> Grade:
        """The grade of evidence of the device itself."""
        return grade_of_device(simulated=self.simulated)


@dataclass(frozen=True)
class StoredGroup:
    """A planned group: its key, and whether all its cases have been recorded."""

    id: int
    key: GroupKey
    done: bool


@dataclass(frozen=True)
class StoredCase:
    """A recorded case with its group.

    Attributes:
        grade: the grade of the evidence.
        kernels: the shipped kernels that the case launched, if it did not pass.
        ulp_sensitivity: whether a wrong result of shipped kernels is ULP-sensitive; None if that was not tried.
        predictions: the predictions that explain all differing elements of a wrong case; the value of `rounding` is the
            largest error in units of the tolerance.
        looked_inside: the calls inside the case were audited one by one, because it did not pass.
        at_fault: the first inner call that was wrong; None if none was.
    """

    id: int
    group: GroupKey
    position: int
    outcome: Outcome
    inputs: str
    looked_inside: bool = False
    at_fault: AtFault | None = None
    grade: Grade = Grade.DISPATCH_ONLY
    kernels: tuple[str, ...] = ()
    ulp_sensitivity: UlpSensitivity | None = None
    predictions: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name in every run with these settings: source:operator[.variant]:dtype:position[:strict]."""
        return self.group.label_of(self.position)

    @property
    def fault_message(self) -> str:
        """What was wrong in the inner call at fault; if none is known, in the case."""
        return self.at_fault.message if self.at_fault else self.outcome.message

    @property
    def fault_inputs(self) -> str:
        """The arguments of the inner call at fault; if none is known, those of the case."""
        return self.at_fault.call if self.at_fault else self.inputs


@dataclass(frozen=True)
class StoredCompiledCase:
    """A case of a run under torch.compile. The generated source is kept if the result is not right."""

    group: GroupKey
    position: int
    inputs: str
    compiled: CompiledOutcome

    @property
    def label(self) -> str:
        """The label that `mpsmith replay` takes."""
        return self.group.label_of(self.position)


@dataclass(frozen=True)
class CaseCount:
    """How many cases of a group had one verdict and grade of evidence; skipped cases are counted by `reason`.

    `gradients` counts the cases whose gradients were compared, `with_fallbacks` those in which an operator fell back,
    `refused` those that passed because both devices refuse the call. `seconds` is the sum of their wall times.
    """

    group: GroupKey
    verdict: CaseVerdict
    reason: str
    cases: int
    with_fallbacks: int
    gradients: int
    seconds: float
    grade: Grade = Grade.DISPATCH_ONLY
    refused: int = 0


@dataclass(frozen=True)
class Covered:
    """The distinct levels of the executed cases of a group, and how many repeating cases were left out.

    `refused`: the levels of the cases that the CPU refuses.
    """

    group: GroupKey
    repeating: int
    levels: tuple[Levels, ...]
    refused: tuple[Levels, ...] = ()


class ModuleStatus(str, Enum):
    """The result of probing one public name of torch.mps."""

    WORKS = "present and works"
    FAILS = "present, fails"
    MISSING = "missing"
    NOT_PROBED = "not probed"


@dataclass(frozen=True)
class ModuleRow:
    """One public name of torch.mps ("torch.mps.synchronize"): its status, and the reason on one line, or ""."""

    name: str
    status: ModuleStatus
    detail: str = ""
