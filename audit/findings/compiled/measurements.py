"""What a run under torch.compile measured of each operator of aten, in the form that the registry takes."""

from __future__ import annotations

from collections.abc import Collection

from ...compiled.verdicts import CompiledVerdict, worst_compiled
from .summary import CompiledSummary, aten_names


def compiled_measurements(summary: CompiledSummary, known: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """For each operator of the registry the dtypes of each compiled verdict, the worst of a dtype's cases.

    Args:
        summary: the run.
        known: the operators of the registry ("aten::mode"); an entry of a source goes to the first that it may be.
    """
    found: dict[str, dict[str, set[CompiledVerdict]]] = {}
    for operator in summary.operators:
        name = next((each for each in aten_names(operator.name) if each in known), None)
        if name is not None:
            for dtype, verdict in operator.dtypes.items():
                found.setdefault(name, {}).setdefault(dtype, set()).add(verdict)
    return {name: _by_verdict(dtypes) for name, dtypes in found.items()}


def _by_verdict(dtypes: dict[str, set[CompiledVerdict]]) -> dict[str, list[str]]:
    by_verdict: dict[str, list[str]] = {}
    for dtype, verdicts in dtypes.items():
        worst = worst_compiled(verdicts)
        assert worst is not None
        by_verdict.setdefault(worst.value, []).append(dtype)
    return by_verdict
