"""Decides whether an operator is a gap on mps, and says why not otherwise."""

from __future__ import annotations

from pathlib import Path

from ...audit.releases import data as release_data
from ...audit.releases.surface.overloads import Dispatch
from ...audit.releases.surface.reachability import Unreachable
from ...registry.files import load
from ...registry.model import Entry, Status
from ..errors import ScaffoldError
from .model import OperatorModel, lacks_kernel


def require_gap(operator: OperatorModel) -> None:
    """Raise ScaffoldError unless the operator is a gap, with the reason."""
    lacking = [overload for overload in operator.overloads if lacks_kernel(overload.surface)]
    if not lacking:
        raise ScaffoldError(f"{_why_not_missing(operator)}; --force scaffolds a kernel all the same")
    unreachable = [overload.surface.reach for overload in lacking if isinstance(overload.surface.reach, Unreachable)]
    if len(unreachable) == len(lacking):
        reason = unreachable[0].reason
        raise ScaffoldError(
            f"no user of an mps device can reach {operator.full_name}: it {reason}; --force scaffolds it all the same"
        )


def _why_not_missing(operator: OperatorModel) -> str:
    dispatches = {overload.surface.dispatch for overload in operator.overloads}
    if any(dispatch.has_kernel for dispatch in dispatches):
        first = native_since(operator)
        since = f" since torch {first}" if first else ""
        return f"{operator.full_name} has native kernels on mps{since}"
    if dispatches == {Dispatch.MISSING_EVERYWHERE}:
        return f"{operator.full_name} has no kernel for the CPU either: there is nothing to compare a kernel with"
    return f"{operator.full_name} is composed of other operators and needs no kernel"


def native_since(operator: OperatorModel) -> str | None:
    """The first known release in which an overload of the operator has a kernel; None where none is known to."""
    kernels = {dispatch.value for dispatch in Dispatch if dispatch.has_kernel}
    data = release_data.load()
    for position, facts in enumerate(data.releases):
        for overload in operator.overloads:
            history = data.overloads.get(overload.name)
            if history and history.dispatch[position] in kernels:
                return facts.release
    return None


def require_no_kernel(operator: OperatorModel, registry: Path | None) -> None:
    """Raise ScaffoldError when mpsmith has a kernel for the operator already."""
    entry: Entry | None = load(registry).get(operator.full_name)
    if entry and entry.kernel and entry.status in (Status.implemented, Status.verified):
        raise ScaffoldError(
            f"{operator.full_name} is {entry.status.value} already, in mpsmith.kernels.{entry.kernel}; "
            "--force scaffolds another kernel"
        )
