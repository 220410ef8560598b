"""The format of an evidence file: the machine, a verdict with its counts for each overload and dtype, and the kernels.

The file is compressed JSON of these models. Anybody may have made it, so unknown keys, other versions and values out of
bounds are refused. An incompatible change raises the version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from ...audit.model.selection import DTYPES
from ...audit.model.verdicts import CASE_SEVERITY, CaseVerdict, OverloadVerdict
from ...audit.releases.surface.overloads import Dispatch
from ...registry.model import DtypeName, ModuleName, OperatorName, OverloadName, Release
from ...registry.torch_release import is_older

LONGEST_MESSAGE = 400

# Cases with these verdicts are listed one by one; the others are counted.
LISTED = CASE_SEVERITY[: CASE_SEVERITY.index(CaseVerdict.PASSED)]

STRICT = ":strict"

# The steps of `preflight_steps.py` that evidence of a real device must have passed.
PREFLIGHT_STEPS = ("device", "memory", "arithmetic", "fallback", "kernels", "arithmetic again")


def _comparable(release: str) -> str:
    is_older(release, release)  # raises ValueError unless releases can be ordered by it
    return release


TorchRelease = Annotated[Release, AfterValidator(_comparable)]
Position = Annotated[int, Field(ge=-1, le=10**7)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Milliseconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Message = Annotated[str, StringConstraints(max_length=LONGEST_MESSAGE)]
# The group of a case as in its label: source:operator[.variant]:dtype, with :strict for strict mode.
GroupLabel = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z -]*:[A-Za-z_][\w.:/# -]*:[a-z][a-z0-9_]*(:strict)?$", max_length=200)
]
Variable = Annotated[str, StringConstraints(pattern=r"^PYTORCH_MPS_[A-Z0-9_]+$", max_length=100)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MachineFacts(_Part):
    """Facts that results depend on; nothing that identifies a person or one machine.

    Attributes:
        chip: as the system gives it, "Apple M3 Pro".
        system, release, build: "macOS", "15.5", "24F74".
        machine: the architecture, "arm64".
        profile: the release whose coverage was simulated; None on a real device.
        virtual: whether a Mac is a virtual machine.
        variables: every PYTORCH_MPS_* variable.
    """

    chip: Name
    gpu_cores: Annotated[int, Field(ge=1, le=10**4)] | None = None
    system: Name
    release: Name
    build: Name | None = None
    machine: Name
    memory_gib: Annotated[int, Field(ge=1, le=10**6)] | None = None
    torch: TorchRelease
    python: Release
    profile: TorchRelease | None = None
    virtual: bool = False
    variables: dict[Variable, Message] = Field(default_factory=dict)


class PreflightPart(_Part):
    """The preflight of a real device before its audit.

    Attributes:
        steps: the steps that passed, and what each saw.
        seconds: how long they took.
    """

    steps: Annotated[dict[Name, Message], Field(max_length=20)]
    seconds: Annotated[float, Field(ge=0, le=1e4, allow_inf_nan=False)]


class DtypeRow(_Part):
    """One dtype of an overload: the verdict, and the number of cases with each case verdict."""

    verdict: OverloadVerdict
    cases: dict[CaseVerdict, Count]


class OverloadRow(_Part):
    """One overload.

    Attributes:
        dispatch: from the surface; None for operators outside of it.
        through: operators inside it that fell back or are missing.
        dtypes: the findings by dtype.
    """

    dispatch: Dispatch | None = None
    through: list[Name] = Field(default_factory=list)
    dtypes: Annotated[dict[DtypeName, DtypeRow], Field(max_length=len(DTYPES) + 10)]

    @property
    def cases(self) -> Counter[CaseVerdict]:
        """The number of cases with each verdict, over all dtypes."""
        total: Counter[CaseVerdict] = Counter()
        for row in self.dtypes.values():
            total.update(row.cases)
        return total


class FailingCases(_Part):
    """Cases of one group with the same verdict and message, by their positions in the group."""

    verdict: CaseVerdict
    message: Message = ""
    positions: Annotated[list[Position], Field(min_length=1, max_length=100_000)]


class AuditPart(_Part):
    """The audit.

    Attributes:
        simulated: as in EvidenceFile.
        samples, seed, ops, dtypes, sources: the selection of cases; empty means all.
        complete: every planned group was executed to its end.
        executed: cases that ran on the device.
        cases: all recorded cases by verdict.
        overloads: the measured overloads by name.
        failing: the cases of the verdicts LISTED, by group label; see `failing_cases`.
        left_out: how many of them are not listed, to keep the file small, by verdict.
    """

    simulated: bool
    samples: Name
    seed: int = 0
    ops: list[Name] = Field(default_factory=list)
    dtypes: list[Name] = Field(default_factory=list)
    sources: list[Name] = Field(default_factory=list)
    complete: bool
    executed: Count
    cases: dict[CaseVerdict, Count]
    overloads: Annotated[dict[OverloadName, OverloadRow], Field(max_length=20_000)]
    failing: Annotated[dict[GroupLabel, list[FailingCases]], Field(max_length=100_000)]
    left_out: dict[CaseVerdict, Count] = Field(default_factory=dict)

    def failing_cases(self) -> Iterator[tuple[str, CaseVerdict, str]]:
        """The label of each listed case, which `mpsmith replay` takes, its verdict and its message."""
        for group, same_outcome in self.failing.items():
            bare = group.removesuffix(STRICT)
            for cases in same_outcome:
                for position in cases.positions:
                    yield f"{bare}:{position}{group[len(bare) :]}", cases.verdict, cases.message


class KernelTiming(_Part):
    """Median milliseconds per call, as `mpsmith kernels bench` measures them.

    Attributes:
        operator: the overload that was timed.
        elements: of the largest tensor, approximately.
        kernel: with our kernel; None if torch has its own.
        without: without ours; None if that fails. `without_is`: what ran instead, or why there is no time.
        cpu: on the CPU.
    """

    operator: OverloadName
    elements: Count
    kernel: Milliseconds | None = None
    without: Milliseconds | None = None
    without_is: Message = ""
    cpu: Milliseconds


class KernelFailure(_Part):
    """One failure of a kernel family, with its reason."""

    what: Message
    reason: Message = ""


class KernelRow(_Part):
    """The verification and timing of one kernel family.

    Attributes:
        simulated: as in EvidenceFile; a simulated device verifies no kernel.
        source: digest of the files that decide what the family computes.
        operators: those whose kernels ran in cases that passed.
        cases, without_reference: executed on mps; executed with nothing to compare with.
        failed: the number of failures; `failures` lists the first of them.
        checks, dtypes: those that passed.
        native: calls that were skipped because torch has its own kernels for them.
        ended: why the family was given up, such as a crash; "" if it finished.
        timing: None if there is none; `untimed` says why.
    """

    family: ModuleName
    simulated: bool
    source: Digest
    operators: list[OperatorName] = Field(default_factory=list)
    cases: Count = 0
    without_reference: Count = 0
    failed: Count = 0
    failures: Annotated[list[KernelFailure], Field(max_length=50)] = Field(default_factory=list)
    checks: list[Name] = Field(default_factory=list)
    dtypes: list[DtypeName] = Field(default_factory=list)
    native: Count = 0
    ended: Message = ""
    timing: KernelTiming | None = None
    untimed: Message = ""

    @property
    def passed(self) -> bool:
        """Whether some case ran, nothing failed and the family finished."""
        return self.cases > 0 and not self.failed and not self.ended


class EvidenceFile(_Part):
    """One evidence file.

    Attributes:
        mpsmith: the version that collected it.
        simulated: the mps device was simulated: nothing here is evidence about a Mac.
        preflight: how the real device was tried first; None for a simulated one.
    """

    format: Literal["mpsmith-evidence"]
    version: Literal[1]
    mpsmith: Release
    collected: AwareDatetime
    simulated: bool
    machine: MachineFacts
    preflight: PreflightPart | None = None
    audit: AuditPart
    kernels: Annotated[list[KernelRow], Field(max_length=500)]

    @property
    def day(self) -> str:
        """The day on which it was collected, in UTC."""
        return f"{self.collected:%Y-%m-%d}"
