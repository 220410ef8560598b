"""Decides whether an operator is a gap on mps, and gives the reason if it is not."""

from __future__ import annotations

from pathlib import Path

from ...audit.answers import sentences
from ...audit.answers.answer import answer
from ...audit.releases.surface.overloads import Dispatch
from ...audit.releases.surface.reachability import Unreachable
from ...errors import MpsmithError
from ...registry.files import load
from ...registry.model import Entry, Status
from ..errors import ScaffoldError
from .model import OperatorModel, lacks_kernel


def require_gap(operator: OperatorModel) -> None:
    """Raise ScaffoldError unless the operator is a gap, with the reason."""
    lacking = [overload for overload in operator.overloads if lacks_kernel(overload.surface)]
    if not lacking:
        raise ScaffoldError(f"{why_not_missing(operator)}; --force scaffolds a kernel all the same")
    unreachable = [overload.surface.reach for overload in lacking if isinstance(overload.surface.reach, Unreachable)]
    if len(unreachable) == len(lacking):
        reason = unreachable[0].reason
        raise ScaffoldError(
            f"no user of an mps device can reach {operator.full_name}: it {reason}; --force scaffolds it all the same"
        )


def why_not_missing(operator: OperatorModel) -> str:
    """Why an operator is not a gap, and what to do instead, from the answer that every command gives."""
    dispatches = {overload.surface.dispatch for overload in operator.overloads}
    if dispatches == {Dispatch.MISSING_EVERYWHERE}:
        return f"{operator.full_name} has no kernel for the CPU either: there is nothing to compare a kernel with"
    try:
        answered = answer(operator.full_name, operator.release)
    except MpsmithError:  # a nightly, or an operator that is newer than the release data
        return f"{operator.full_name} is composed of other operators, or has kernels on mps"
    if any(dispatch.has_kernel for dispatch in dispatches):
        since = f" since torch {answered.since}" if answered.since else ""
        return f"{operator.full_name} has native kernels on mps{since}"
    composed = f"{operator.full_name} is composed of other operators and needs no kernel"
    if not answered.lacking:
        return composed
    instead = " or ".join(
        f"`{step.command}`" for step in sentences.replacements(answered) if "trace" not in step.command
    )
    if operator.name in answered.lacking:
        return f"torch always runs {operator.full_name} on the CPU; instead: {instead}"
    return f"{composed}; mps lacks {sentences.listed(answered.lacking)}: {instead}"


def require_no_kernel(operator: OperatorModel, registry: Path | None) -> None:
    """Raise ScaffoldError when mpsmith has a kernel for the operator already."""
    entry: Entry | None = load(registry).get(operator.full_name)
    if entry and entry.kernel and entry.status in (Status.implemented, Status.verified):
        raise ScaffoldError(
            f"{operator.full_name} is {entry.status.value} already, in mpsmith.kernels.{entry.kernel}: "
            "`import mpsmith.kernels` uses it; --force scaffolds another kernel"
        )
