"""The model of a registry entry: what people decide about an operator, and its measurements.

`status` is a human field: people write it, by hand or through `mpsmith registry set`, and so do the steps that a person
starts for one operator (scaffold, verify). A sync never writes it. An entry without a status has the one that follows
from its measurement (`Entry.current_status`); an entry with one is checked against the measurement (`registry.drift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from .parsing import Plain

Device = Literal["mps", "simulated"]

# From the strongest evidence to the weakest: a real device outranks any simulation.
DEVICES: tuple[Device, ...] = get_args(Device)

Dispatch = Literal[
    "native",
    "structured delegate",
    "composite implicit",
    "composite explicit",
    "always falls back",
    "missing",
    "missing everywhere",
]

Verdict = Literal[
    "native",
    "composite",
    "fallback",
    "missing",
    "wrong",
    "dtype gap",
    "crash",
    "timeout",
    "reference failed",
    "unreachable",
]

DtypeVerdict = Literal[
    "passed", "fallback", "missing", "wrong", "dtype gap", "crash", "timeout", "reference failed", "skipped"
]

# What became of calls under torch.compile, from the best; `audit.compiled.verdicts` says what each means.
CompiledWord = Literal[
    "metal",
    "metal + aten",
    "aten",
    "no kernel",
    "cannot trace",
    "dtype gap",
    "missing",
    "error",
    "not lowered",
    "rejected",
    "undefined lanes",
    "race",
    "wrong",
    "timeout",
    "crash",
]

# What a case shows of the call itself, whether there is a kernel or not; from the worst.
Breakage = Literal["crash", "timeout", "wrong"]

OPERATOR_PATTERN = r"^[A-Za-z_]\w*::\w+$"
OVERLOAD_PATTERN = r"^[A-Za-z_]\w*::\w+(\.\w+)?$"

Text = Annotated[str, StringConstraints(pattern=r"\S")]
OperatorName = Annotated[str, StringConstraints(pattern=OPERATOR_PATTERN)]
OverloadName = Annotated[str, StringConstraints(pattern=OVERLOAD_PATTERN)]
Release = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\S*$")]
DtypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Reference = Annotated[str, StringConstraints(pattern=r"^(\d+|https?://\S+)$")]
ModuleName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]*$")]


Grade = Literal["real device", "host code", "shipped kernel", "dispatch only"]


class Status(str, Enum):
    """The status of an operator on mps. The first six can follow from a measurement; people set the others."""

    native = "native"
    composite = "composite"
    falls_back = "falls back"
    missing = "missing"
    wrong = "wrong"
    dtype_gap = "dtype gap"
    scaffolded = "scaffolded"
    implemented = "implemented"
    verified = "verified"
    upstreamed = "upstreamed"
    not_applicable = "not applicable"


# A crash or a hang is at least as bad as a wrong value. A failed reference is no evidence: no status follows from it.
STATUS_OF_VERDICT: dict[Verdict, Status] = {
    "native": Status.native,
    "composite": Status.composite,
    "fallback": Status.falls_back,
    "missing": Status.missing,
    "wrong": Status.wrong,
    "dtype gap": Status.dtype_gap,
    "crash": Status.wrong,
    "timeout": Status.wrong,
    "unreachable": Status.not_applicable,
}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measured(_Model):
    """What an audit measured of one operator on one device. Written by a sync, never by people.

    Attributes:
        torch: the release of torch that was audited.
        profile: the release whose coverage the simulated device had; absent where that is torch's own.
        verdict: the operator's verdict over all its overloads.
        reason: one line that explains the verdict, such as the rule that makes the operator unreachable.
        overloads: how each overload dispatches on mps, by its full name (`aten::mode.values`).
        dtypes: what most of the executed cases showed: the dtypes of each verdict; empty where nothing was executed.
        partly: the dtypes in which some cases crash, time out or are wrong, although most say something else.
        shipped_kernel: on the simulated device, the dtypes in which a kernel that the release ships computed some case.
        host_code: there, the dtypes in which the release's host code computed some case; of those in neither list the
            evidence is dispatch only.
        compiled: what became of the calls under torch.compile: the dtypes of each verdict, the worst of their cases.
    """

    torch: Release
    profile: Release | None = None
    verdict: Verdict
    reason: Text | None = None
    overloads: dict[OverloadName, Dispatch] = Field(default_factory=dict)
    dtypes: dict[DtypeVerdict, list[DtypeName]] = Field(default_factory=dict)
    partly: dict[Breakage, list[DtypeName]] = Field(default_factory=dict)
    shipped_kernel: list[DtypeName] = Field(default_factory=list)
    host_code: list[DtypeName] = Field(default_factory=list)
    compiled: dict[CompiledWord, list[DtypeName]] = Field(default_factory=dict)

    @property
    def release(self) -> str:
        """The release of torch whose coverage was measured."""
        return self.profile or self.torch

    def grade_on(self, device: Device) -> Grade | None:
        """The grade of the strongest evidence on this device when that was measured; None if no case was executed."""
        if self.verdict == "unreachable":
            return None
        if device == "mps":
            return "real device"
        if self.host_code:
            return "host code"
        return "shipped kernel" if self.shipped_kernel else "dispatch only"


class Evidence(_Model):
    """What verifying the operator's replacement kernel on one device showed.

    Attributes:
        torch: the release of torch under which the checks ran.
        source: hexadecimal digest of the kernel's sources, so that evidence for older sources is recognised.
        checks: the names of the checks that passed, such as numerics, gradients, opcheck.
        dtypes: the dtypes that were checked.
    """

    torch: Release
    source: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
    checks: Annotated[list[Text], Field(min_length=1)]
    dtypes: list[DtypeName] = Field(default_factory=list)


class Entry(_Model):
    """Everything about one operator, over all its overloads.

    Attributes:
        operator: the operator's name, `aten::mode`; in the files it is the key of the entry.
        status: a person's decision; without one, `current_status` follows the measurement.
        reason: why the operator is not applicable; required for that status.
        owner: who works on it.
        issue: the upstream issue, its URL or its number in pytorch/pytorch.
        pull_request: the upstream pull request, its URL or its number in pytorch/pytorch.
        kernel: the module in `mpsmith.kernels` that replaces the operator.
        notes: anything worth knowing.
        evidence: what verifying the kernel showed, by device.
        measured: what audits measured, by device; simulated and real measurements are separate.
    """

    operator: OperatorName
    status: Status | None = None
    reason: Text | None = None
    owner: Text | None = None
    issue: Reference | None = None
    pull_request: Reference | None = None
    kernel: ModuleName | None = None
    notes: Text | None = None
    evidence: dict[Device, Evidence] = Field(default_factory=dict)
    measured: dict[Device, Measured] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _statuses_have_what_they_claim(self) -> Entry:
        if self.status is Status.not_applicable and self.reason is None:
            raise ValueError("the status 'not applicable' needs a reason")
        if self.status in (Status.implemented, Status.verified) and self.kernel is None:
            raise ValueError(f"the status '{self.status.value}' needs a kernel")
        if self.status is Status.verified and "mps" not in self.evidence:
            raise ValueError("the status 'verified' needs evidence of a real device (under `evidence: mps:`)")
        return self

    @model_validator(mode="after")
    def _overloads_are_its_own(self) -> Entry:
        for measured in self.measured.values():
            for overload in measured.overloads:
                if overload.split(".")[0] != self.operator:
                    raise ValueError(f"{overload} is not an overload of {self.operator}")
        return self

    @property
    def ranking_device(self) -> Device | None:
        """The device whose measurement counts: a real one outranks the simulated one; None without a measurement."""
        return next((device for device in DEVICES if device in self.measured), None)

    @property
    def ranking_measurement(self) -> Measured | None:
        """The measurement that counts, that of `ranking_device`."""
        return self.measured[self.ranking_device] if self.ranking_device else None

    @property
    def is_partly_broken(self) -> bool:
        """Whether some, but not most, cases of the ranking measurement crash, time out or are wrong."""
        return self.ranking_measurement is not None and bool(self.ranking_measurement.partly)

    @property
    def current_status(self) -> Status | None:
        """The status that people gave, else the one that follows from the measurement, else None: not known."""
        if self.status is not None or self.ranking_measurement is None:
            return self.status
        return STATUS_OF_VERDICT.get(self.ranking_measurement.verdict)


HUMAN_FIELDS: tuple[str, ...] = ("status", "reason", "owner", "issue", "pull_request", "kernel", "notes")


def data_of(model: Measured | Evidence) -> dict[str, Plain]:
    """A part of an entry as plain data in the order of its fields, without absent or empty fields."""
    dumped: dict[str, Plain] = model.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in dumped.items() if value not in ({}, [])}


def in_dtype_order(names: Sequence[str]) -> list[str]:
    """Dtype names without repeats: floating point, complex, integers, bool, each from the widest; others at the end."""
    order = {name: position for position, name in enumerate(_DTYPE_ORDER)}
    return sorted(set(names), key=lambda name: (order.get(name, len(order)), name))


_DTYPE_ORDER = (
    *("float64", "float32", "bfloat16", "float16"),
    *("complex128", "complex64", "complex32"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
)
