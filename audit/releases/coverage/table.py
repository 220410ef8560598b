"""A table of operators that joins releases, kernels, upstream's tests, audits, the registry and replacements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ....registry.model import Entry
from ...model.selection import DTYPES
from ..data import ReleaseData
from ..surface.native_functions import functional_name, operator_of
from ..surface.overloads import Dispatch
from . import OverloadCoverage, ReleaseCoverage, from_data

DtypesByStage = Mapping[str, tuple[str, ...]]


class OperatorSupport(str, Enum):
    """Whether an operator's overloads have kernels on mps; composite ones are ignored."""

    NATIVE = "native"
    PARTLY_NATIVE = "partly native"
    COMPOSITE = "composite"
    FALLS_BACK = "always falls back"
    MISSING = "missing"
    SPARSE_ONLY = "native for sparse tensors"
    MISSING_EVERYWHERE = "missing everywhere"


class Drift(str, Enum):
    """Where upstream's expected failures and the kernels contradict each other."""

    LISTED_BUT_NATIVE = "listed as unimplemented, has a kernel"
    MISSING_BUT_NOT_LISTED = "has no kernel, is not listed"


@dataclass(frozen=True)
class OperatorRow:
    """Everything about one operator (a functional name without namespace, its in-place form included).

    `native_since` is the first release since which some overload has always had a kernel.
    `expected_failures` maps a stage of FailureKey to dtypes, or to `all`. `verdict` comes from an audit, `status` from
    the registry. `measured_on` is the device of the audit, `simulated` without a Mac, and `grade` the grade of its
    evidence.
    """

    operator: str
    support: OperatorSupport
    native_overloads: int
    kernel_overloads: int
    native_since: str | None
    metal_dtypes: tuple[str, ...]
    expected_failures: DtypesByStage
    drift: tuple[Drift, ...]
    verdict: str | None = None
    measured_on: str | None = None
    grade: str | None = None
    status: str | None = None
    replacement: str | None = None


@dataclass(frozen=True)
class AuditVerdicts:
    """The verdicts of one audit by operator, such as `aten::mode`, and the device that it ran on.

    `grades`: the grades of the evidence, as values of `verdicts.Grade`.
    """

    verdicts: Mapping[str, str]
    device: str
    grades: Mapping[str, str]


def operator_rows(
    coverage: ReleaseCoverage,
    data: ReleaseData,
    registry: Mapping[str, Entry] | None = None,
    audit: AuditVerdicts | None = None,
) -> list[OperatorRow]:
    """A row for every operator of the release, sorted by name.

    `data` gives the first releases; `registry` the entries by operator, such as `aten::mode`. The verdicts are
    those of `audit`; without one, those recorded in the registry.
    """
    since = _native_since(data, coverage)
    failures = failures_by_operator(coverage)
    rows = []
    for operator, overloads in sorted(coverage.by_operator.items()):
        support = support_of(overloads)
        expected = failures.get(operator, {})
        names = _names(operator, overloads)
        entry = next((registry[name] for name in names if name in registry), None) if registry else None
        verdict, device, grade = _verdict(names, entry, audit)
        needing = [overload for overload in overloads if not overload.dispatch.is_composite]
        rows.append(
            OperatorRow(
                operator=operator,
                support=support,
                native_overloads=sum(overload.dispatch.has_kernel for overload in overloads),
                kernel_overloads=len(needing),
                native_since=since.get(operator),
                metal_dtypes=coverage.metal_dtypes.get(operator, ()),
                expected_failures=expected,
                drift=_drift(operator, support, expected, coverage),
                verdict=verdict,
                measured_on=device,
                grade=grade,
                status=entry.current_status.value if entry and entry.current_status else None,
                replacement=entry.kernel if entry else None,
            )
        )
    return rows


def support_of(overloads: Sequence[OverloadCoverage]) -> OperatorSupport:
    """The support of an operator with these overloads."""
    dispatches = {overload.dispatch for overload in overloads}
    kernels = any(dispatch.has_kernel for dispatch in dispatches)
    lacking = not dispatches.isdisjoint({Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK})
    if kernels:
        return OperatorSupport.PARTLY_NATIVE if lacking else OperatorSupport.NATIVE
    if Dispatch.MISSING in dispatches:
        return OperatorSupport.MISSING
    if Dispatch.ALWAYS_FALLS_BACK in dispatches:
        return OperatorSupport.FALLS_BACK
    if Dispatch.MISSING_EVERYWHERE in dispatches:
        has_sparse = any(overload.sparse or overload.sparse_compressed for overload in overloads)
        return OperatorSupport.SPARSE_ONLY if has_sparse else OperatorSupport.MISSING_EVERYWHERE
    return OperatorSupport.COMPOSITE


def support_by_release(data: ReleaseData) -> dict[str, tuple[OperatorSupport | None, ...]]:
    """The support of every operator in each release, oldest first; None if a release does not have it."""
    support: dict[str, list[OperatorSupport | None]] = {}
    for position in range(len(data.releases)):
        for operator, overloads in from_data(data, position).by_operator.items():
            support.setdefault(operator, [None] * len(data.releases))[position] = support_of(overloads)
    return {operator: tuple(row) for operator, row in support.items()}


def _native_since(data: ReleaseData, coverage: ReleaseCoverage) -> dict[str, str]:
    """By operator, the first of the consecutive releases with a kernel, up to the covered one or else the newest."""
    kernels = {dispatch.value for dispatch in Dispatch if dispatch.has_kernel}
    native: dict[str, list[bool]] = {}
    for history in data.overloads.values():
        states = native.setdefault(functional_name(history.name), [False] * len(data.releases))
        for position, dispatch in enumerate(history.dispatch):
            by_hand = history.name in data.releases[position].undeclared_kernels
            states[position] = states[position] or dispatch in kernels or by_hand
    order = [facts.release for facts in data.releases]
    last = order.index(coverage.release) if coverage.release in order else len(order) - 1
    since = {}
    for operator, states in native.items():
        first = last
        while first >= 0 and states[first]:
            first -= 1
        if first < last:
            since[operator] = order[first + 1]
    return since


def failures_by_operator(coverage: ReleaseCoverage) -> dict[str, DtypesByStage]:
    """The dtypes that PyTorch's tests expect to fail, by operator and stage of FailureKey, over all variants."""
    collected: dict[str, dict[str, set[str]]] = {}
    for key, text in coverage.failures.items():
        collected.setdefault(key.operator, {}).setdefault(key.stage, set()).update(text.split(","))
    return {
        operator: {stage: _in_order(dtypes) for stage, dtypes in sorted(stages.items())}
        for operator, stages in collected.items()
    }


def _in_order(dtypes: Iterable[str]) -> tuple[str, ...]:
    given = set(dtypes)
    return ("all",) if "all" in given else tuple(dtype for dtype in DTYPES if dtype in given)


def _drift(
    operator: str, support: OperatorSupport, expected: DtypesByStage, coverage: ReleaseCoverage
) -> tuple[Drift, ...]:
    """Contradictions of PyTorch's expected failures; none for operators that it does not test or releases without them.

    An entry for some integer dtypes does not contradict a kernel; one for float32 does.
    """
    if operator not in coverage.tested or not coverage.failures:
        return ()
    listed = expected.get("unimplemented", ())
    if support is OperatorSupport.NATIVE and "float32" in listed:
        return (Drift.LISTED_BUT_NATIVE,)
    without_kernel = support in (OperatorSupport.MISSING, OperatorSupport.FALLS_BACK)
    if without_kernel and not listed and "opinfo" not in expected:
        return (Drift.MISSING_BUT_NOT_LISTED,)
    return ()


def _names(operator: str, overloads: Sequence[OverloadCoverage]) -> list[str]:
    """The names of the operator and of its in-place forms, as in the registry and in audits."""
    plain = [operator, *(operator_of(overload.name) for overload in overloads)]
    return list(dict.fromkeys(f"aten::{name}" for name in plain))


def _verdict(
    names: Sequence[str], entry: Entry | None, audit: AuditVerdicts | None
) -> tuple[str | None, str | None, str | None]:
    """The verdict, its device, and its grade."""
    if audit is not None:
        name = next((name for name in names if name in audit.verdicts), None)
        return (audit.verdicts[name], audit.device, audit.grades.get(name)) if name else (None, None, None)
    measured = entry.ranking_measurement if entry else None
    if not entry or not entry.ranking_device or not measured:
        return None, None, None
    return measured.verdict, entry.ranking_device, measured.grade_on(entry.ranking_device)
