"""Writes the measurements of an audit into the registry.

A sync writes `measured`, for the device that was measured, of the operators that were measured; no other field, no
other device and no other operator. It makes entries for operators that have none and removes none. Syncing the same
measurements again changes no file. `status` is for people (see `registry.model`): an entry without one follows its
measurement by itself, and one that contradicts its measurement is reported as drift.

Two rules keep a narrow audit from hiding what a wide one found:
- a measurement of an older release never replaces that of a newer one on the same device, unless asked for;
- under the same release, dtypes that were not executed this time keep what they showed, and the verdict stays the
  worst of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from .drift import StatusDrift, drift_of
from .files import load, merged_devices, merged_fields, replace_entries
from .model import DEVICES, Breakage, Device, DtypeVerdict, Entry, Measured, Verdict, data_of, in_dtype_order
from .problems import RegistryError
from .torch_release import is_older, public_version
from .validation import described
from .writing import exclusive, writable_folder


@dataclass(frozen=True)
class Measurement:
    """The result of one audit for one operator, as plain data.

    Attributes:
        operator: the operator's name, "aten::mode".
        torch: the version of torch that ran, with or without its build ("2.13.0+cpu").
        device: "mps" for a real device, "simulated" for the simulated one.
        profile: the release whose coverage was simulated; None on a real device.
        overloads: how each overload dispatches on mps, by full name, in the surface's words.
        verdict: the operator's verdict, over its overloads.
        dtypes: the dtypes of each verdict of executed cases, {"passed": ["float32"], "wrong": ["int64"]}.
        partly: the dtypes in which some cases, not most, crash, time out or are wrong: {"wrong": ["float32"]}.
        shipped_kernel: the dtypes in which a kernel that the release ships computed some case, on a simulated device.
        host_code: the dtypes in which the release's host code did.
        reason: one line that explains the verdict and does not vary between runs, such as why no user reaches it.
    """

    operator: str
    torch: str
    device: str
    profile: str | None
    overloads: Mapping[str, str]
    verdict: str
    dtypes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reason: str | None = None
    partly: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shipped_kernel: Sequence[str] = ()
    host_code: Sequence[str] = ()


@dataclass(frozen=True)
class MeasuredChange:
    """A measurement that differs from the one that was recorded before on the same device."""

    operator: str
    device: Device
    before: Verdict
    after: Verdict

    def __str__(self) -> str:
        change = self.after if self.before == self.after else f"{self.before} → {self.after}"
        return f"{self.operator}: {change}{' (simulated)' if self.device == 'simulated' else ''}"


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync; operators by name.

    Attributes:
        devices: where the measurements were made, "mps" or "simulated".
        added: operators that were not measured on this device before, new entries or not.
        changed: operators with a different finding than before.
        remeasured: operators with the same finding under a different release.
        unchanged: operators whose entry did not change.
        outdated: operators that were not changed because the recorded measurement is of a newer release.
        drift: contradictions between statuses of people and measurements, of the operators in this sync.
    """

    devices: tuple[Device, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[MeasuredChange, ...] = ()
    remeasured: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    drift: tuple[StatusDrift, ...] = ()


def sync(folder: Path | None, measurements: Iterable[Measurement]) -> SyncReport:
    """Write measurements into the registry and report what changed and what drifted.

    `folder`: as for `registry.files.load`; it is made if it does not exist.
    Raises RegistryError (nothing is written) when the registry has problems, a measurement is malformed or given twice,
    or the disk refuses.
    """
    wanted = _by_operator(measurements)
    chosen = writable_folder(folder)
    with exclusive(chosen):
        registry = load(chosen)
        steps = [
            _step(registry.get(operator), operator, device, measured)
            for operator, by_device in wanted.items()
            for device, measured in by_device.items()
        ]
        fields = {operator: registry.fields(operator) for operator in wanted}
        for step in steps:
            if step.writes:
                parts = merged_devices(fields[step.operator].get("measured"), {step.device: data_of(step.new)})
                fields[step.operator] = merged_fields(fields[step.operator], {"measured": parts})
        entries = replace_entries(registry, {operator: new for operator, new in fields.items() if new})
    return _report(steps, entries.values())


Outcome = Literal["added", "changed", "remeasured", "unchanged", "outdated"]


@dataclass(frozen=True)
class _Step:
    """One operator on one device: the recorded measurement, the new one, and their difference."""

    operator: str
    device: Device
    recorded: Measured | None
    new: Measured
    outcome: Outcome

    @property
    def writes(self) -> bool:
        return self.outcome in ("added", "changed", "remeasured")


def _step(entry: Entry | None, operator: str, device: Device, measured: Measured) -> _Step:
    recorded = entry.measured.get(device) if entry else None
    if recorded is None:
        return _Step(operator, device, None, _in_order(measured), "added")
    if is_older(measured.release, recorded.release):
        return _Step(operator, device, recorded, recorded, "outdated")
    new = _in_order(_combined(recorded, measured))
    if (new.torch, new.profile) == (recorded.torch, recorded.profile):
        new = new.model_copy(update={"compiled": recorded.compiled})  # written by registry.compiled_sync
    outcome: Outcome = "changed"
    if new == recorded:
        outcome = "unchanged"
    elif new.model_copy(update={"torch": recorded.torch, "profile": recorded.profile}) == recorded:
        outcome = "remeasured"
    return _Step(operator, device, recorded, new, outcome)


def _report(steps: Sequence[_Step], entries: Iterable[Entry]) -> SyncReport:
    def operators(outcome: Outcome) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.operator for step in steps if step.outcome == outcome))

    return SyncReport(
        devices=tuple(device for device in DEVICES if any(step.device == device for step in steps)),
        added=operators("added"),
        changed=tuple(
            MeasuredChange(step.operator, step.device, step.recorded.verdict, step.new.verdict)
            for step in steps
            if step.outcome == "changed" and step.recorded is not None
        ),
        remeasured=operators("remeasured"),
        unchanged=operators("unchanged"),
        outdated=operators("outdated"),
        drift=tuple(drift for entry in entries if (drift := drift_of(entry)) is not None),
    )


def _by_operator(measurements: Iterable[Measurement]) -> dict[str, dict[Device, Measured]]:
    """The measurements in the model's form, by operator in the order of names, then by device."""
    by_operator: dict[str, dict[Device, Measured]] = {}
    for measurement in measurements:
        device = next((device for device in DEVICES if device == measurement.device), None)
        if device is None:
            raise RegistryError(
                f"{measurement.operator} was measured on '{measurement.device}', not on mps or simulated"
            )
        by_device = by_operator.setdefault(measurement.operator, {})
        if device in by_device:
            raise RegistryError(f"there are two measurements of {measurement.operator} on the {device} device")
        by_device[device] = _measured(measurement)
    return dict(sorted(by_operator.items()))


def _measured(measurement: Measurement) -> Measured:
    torch = public_version(measurement.torch)
    profile = public_version(measurement.profile) if measurement.profile else None
    try:
        return Measured.model_validate(
            {
                "torch": torch,
                "profile": None if profile == torch else profile,
                "verdict": measurement.verdict,
                "reason": measurement.reason,
                "overloads": dict(sorted(measurement.overloads.items())),
                "dtypes": measurement.dtypes,
                "partly": measurement.partly,
                "shipped_kernel": list(measurement.shipped_kernel),
                "host_code": list(measurement.host_code),
            }
        )
    except ValidationError as error:
        wrong = "; ".join(described(details) for details in error.errors())
        raise RegistryError(f"the measurement of {measurement.operator} is malformed: {wrong}") from error


# From the worst to the mildest, of those that one dtype alone can prove.
_SEVERITY: tuple[Verdict, ...] = ("crash", "timeout", "wrong", "missing", "fallback", "dtype gap")


def _combined(recorded: Measured, new: Measured) -> Measured:
    """The new measurement, which keeps the recorded results of dtypes that were not executed this time."""
    if (recorded.torch, recorded.profile) != (new.torch, new.profile) or new.verdict == "unreachable":
        return new  # only a whole audit says unreachable: see audit.findings.measurements
    if recorded.dtypes and not new.dtypes:
        kept_fields = ("dtypes", "partly", "verdict", "reason", "shipped_kernel", "host_code")
        evidence = {name: getattr(recorded, name) for name in kept_fields}
        return new.model_copy(update=evidence)
    executed = {dtype for dtypes in new.dtypes.values() for dtype in dtypes}
    kept = {
        verdict: [dtype for dtype in dtypes if dtype not in executed] for verdict, dtypes in recorded.dtypes.items()
    }
    dtypes: dict[DtypeVerdict, list[str]] = {
        verdict: [*new.dtypes.get(verdict, []), *kept.get(verdict, [])] for verdict in (*new.dtypes, *kept)
    }
    partly: dict[Breakage, list[str]] = {
        broken: [
            *new.partly.get(broken, []),
            *(dtype for dtype in recorded.partly.get(broken, []) if dtype not in executed),
        ]
        for broken in get_args(Breakage)
    }
    shipped = [*new.shipped_kernel, *(dtype for dtype in recorded.shipped_kernel if dtype not in executed)]
    host_code = [*new.host_code, *(dtype for dtype in recorded.host_code if dtype not in executed)]
    # A dtype that is broken decides over the operator only where it did so before: most of its cases may be of others.
    was_broken = recorded.verdict in get_args(Breakage)
    proved = {verdict for verdict, names in kept.items() if names and (was_broken or verdict not in get_args(Breakage))}
    worst = next((verdict for verdict in _SEVERITY if verdict in proved or verdict == new.verdict), new.verdict)
    reason = new.reason if worst == new.verdict else recorded.reason
    grades = {"shipped_kernel": shipped, "host_code": host_code}
    return new.model_copy(update={"dtypes": dtypes, "partly": partly, "verdict": worst, "reason": reason, **grades})


def _in_order(measured: Measured) -> Measured:
    """The measurement with verdicts and dtypes in a fixed order, so that the same finding has one text."""
    dtypes = {verdict: in_dtype_order(measured.dtypes.get(verdict, ())) for verdict in get_args(DtypeVerdict)}
    partly = {broken: in_dtype_order(measured.partly.get(broken, ())) for broken in get_args(Breakage)}
    return measured.model_copy(
        update={
            "dtypes": {verdict: names for verdict, names in dtypes.items() if names},
            "partly": {broken: names for broken, names in partly.items() if names},
            "shipped_kernel": in_dtype_order(measured.shipped_kernel),
            "host_code": in_dtype_order(measured.host_code),
        }
    )
