"""What a file of evidence holds: the machine, a verdict with its counts for each overload and dtype, and the kernels.

The file is JSON of these models, compressed. Unknown keys, other versions and values out of bounds are refused: the
file may come from anybody. A change that readers would notice raises VERSION.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from ...audit.findings.overload_verdict import BREAKAGES, verdict_of, works
from ...audit.model.selection import DTYPES
from ...audit.model.verdicts import CaseVerdict, OverloadVerdict
from ...audit.releases.surface.overloads import Dispatch
from ...registry.model import DtypeName, ModuleName, OperatorName, OverloadName, Release

FORMAT: Literal["mpsmith-evidence"] = "mpsmith-evidence"
VERSION: Literal[1] = 1

LONGEST_MESSAGE = 400

# The verdicts of cases that are listed one by one; the others are counted.
LISTED: tuple[CaseVerdict, ...] = (
    CaseVerdict.CRASH,
    CaseVerdict.TIMEOUT,
    CaseVerdict.WRONG,
    CaseVerdict.MISSING,
    CaseVerdict.FALLBACK,
    CaseVerdict.DTYPE_GAP,
)

STRICT = ":strict"

Position = Annotated[int, Field(ge=-1, le=10**7)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Milliseconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Message = Annotated[str, StringConstraints(max_length=LONGEST_MESSAGE)]
# The group of a case as audits name it: source:operator[.variant]:dtype, and :strict where it ran in strict mode.
GroupLabel = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z ]*:[A-Za-z_][\w.:/# -]*:[a-z][a-z0-9_]*(:strict)?$", max_length=200)
]
Variable = Annotated[str, StringConstraints(pattern=r"^PYTORCH_MPS_[A-Z0-9_]+$", max_length=100)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MachineFacts(_Part):
    """What the results depend on, and nothing that names a person or one machine among others.

    Attributes:
        chip: as the system gives it, "Apple M3 Pro".
        gpu_cores: how many, None where the system does not say.
        system: "macOS" or what else runs; release: of macOS, "15.5"; build: "24F74".
        machine: the architecture, "arm64".
        memory_gib: of the machine.
        torch, python: their versions.
        profile: the release whose coverage was simulated; None on a real device.
        variables: every PYTORCH_MPS_* variable.
    """

    chip: Name
    gpu_cores: Annotated[int, Field(ge=1, le=10**4)] | None = None
    system: Name
    release: Name
    build: Name | None = None
    machine: Name
    memory_gib: Annotated[int, Field(ge=1, le=10**6)] | None = None
    torch: Release
    python: Release
    profile: Release | None = None
    variables: dict[Variable, Message] = Field(default_factory=dict)


class DtypeRow(_Part):
    """What the cases of one dtype showed of an overload: the verdict, and how many of each verdict it rests on."""

    verdict: OverloadVerdict
    cases: dict[CaseVerdict, Count]


class OverloadRow(_Part):
    """What was found of one overload.

    Attributes:
        dispatch: what the surface says of it; None for operators outside the surface.
        through: operators inside it that fell back or are missing.
        dtypes: the findings by dtype.

    What follows from a row is worked out once: files that are read together share the rows that are alike.
    """

    dispatch: Dispatch | None = None
    through: list[Name] = Field(default_factory=list)
    dtypes: Annotated[dict[DtypeName, DtypeRow], Field(max_length=len(DTYPES) + 10)]

    @cached_property
    def cases(self) -> Counter[CaseVerdict]:
        """How many cases had each verdict, over all dtypes."""
        together: Counter[CaseVerdict] = Counter()
        for each in self.dtypes.values():
            together.update(each.cases)
        return together

    @cached_property
    def counted(self) -> int:
        """How many cases it rests on."""
        return self.cases.total()

    @cached_property
    def works_somewhere(self) -> bool:
        """Whether some case, of any dtype, gave a right result."""
        return works(self.cases)

    @cached_property
    def contradicted(self) -> dict[DtypeName, OverloadVerdict]:
        """The dtypes whose verdict is not the one that their own counts give, and that one."""
        follows = {
            dtype: verdict_of(each.cases, self.dispatch, works_somewhere=self.works_somewhere)
            for dtype, each in self.dtypes.items()
        }
        return {dtype: verdict for dtype, verdict in follows.items() if verdict is not self.dtypes[dtype].verdict}

    @cached_property
    def is_simple(self) -> bool:
        """Whether there are dtypes, all verdicts follow from their counts, and no case is broken."""
        return bool(self.dtypes) and not self.contradicted and not self.broken

    @cached_property
    def broken(self) -> tuple[tuple[DtypeName, CaseVerdict, int], ...]:
        """How many cases of which dtypes crashed, timed out or were wrong."""
        return tuple(
            (dtype, verdict, each.cases[verdict])
            for dtype, each in self.dtypes.items()
            for verdict in BREAKAGES
            if each.cases.get(verdict)
        )


class FailingCases(_Part):
    """Cases of one group that showed the same: at these positions."""

    verdict: CaseVerdict
    message: Message = ""
    positions: Annotated[list[Position], Field(min_length=1, max_length=100_000)]


class AuditPart(_Part):
    """What the audit showed.

    Attributes:
        simulated: as at the top: nothing here is evidence about a Mac.
        samples, seed, ops, dtypes, sources: what was asked of the audit; empty means all.
        complete: every planned group was executed to its end.
        executed: cases in which the device was asked.
        cases: all recorded cases by verdict.
        overloads: by name, those that were measured.
        failing: the cases of the verdicts LISTED, by the name of their group; see `failing_cases`.
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
        """Each listed case: its lasting name, as `mpsmith replay` takes it, its verdict and its message."""
        for group, alike in self.failing.items():
            bare = group.removesuffix(STRICT)
            for each in alike:
                for position in each.positions:
                    yield f"{bare}:{position}{group[len(bare) :]}", each.verdict, each.message


class KernelTiming(_Part):
    """Medians in milliseconds a call, as `mpsmith kernels bench` takes them.

    Attributes:
        operator: the overload that was timed.
        elements: of the largest tensor, about.
        kernel: with our kernel; None where torch has its own.
        without: without ours; None where that fails. `without_is` says what answered, or why there is no time.
        cpu: on the CPU.
    """

    operator: OverloadName
    elements: Count
    kernel: Milliseconds | None = None
    without: Milliseconds | None = None
    without_is: Message = ""
    cpu: Milliseconds


class KernelFailure(_Part):
    """What speaks against a kernel, and how."""

    what: Message
    reason: Message = ""


class KernelRow(_Part):
    """What verifying and timing one family of kernels showed.

    Attributes:
        simulated: as at the top: it can then verify no kernel.
        source: digest of the files that decide what the family computes.
        operators: those whose kernels answered in cases that came out right.
        cases, without_reference: executed on mps; without anything to compare with.
        failed: how many things speak against it; `failures` lists the first of them.
        checks, dtypes: that came out right.
        native: how many calls were left out because torch has kernels of its own for all they call.
        ended: why the family was given up, such as a process that died; "" where it came to its end.
        timing: None where there is none; `untimed` says why.
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
        """Whether anything ran, nothing failed and it came to its end: no case at all is no pass."""
        return self.cases > 0 and not self.failed and not self.ended


class EvidenceFile(_Part):
    """One file of evidence.

    Attributes:
        mpsmith: the version that collected it.
        collected: when that was finished.
        simulated: the mps device was simulated: nothing here is evidence about a Mac.
        machine: where.
        audit, kernels: what was found.
    """

    format: Literal["mpsmith-evidence"]
    version: Literal[1]
    mpsmith: Release
    collected: AwareDatetime
    simulated: bool
    machine: MachineFacts
    audit: AuditPart
    kernels: Annotated[list[KernelRow], Field(max_length=500)]

    @property
    def day(self) -> str:
        """The day on which it was collected, in UTC."""
        return f"{self.collected:%Y-%m-%d}"


def dtype_of(group: str) -> str:
    """The dtype that a group's name tells."""
    return group.removesuffix(STRICT).rpartition(":")[2]
