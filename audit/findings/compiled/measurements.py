"""The verdicts that an audit under torch.compile gives operators of aten, also in the registry's form."""

from __future__ import annotations

from collections.abc import Collection

from ...compiled.verdicts import CompiledVerdict, worst_compiled
from .summary import CompiledSummary, aten_names


def compiled_verdicts(summary: CompiledSummary, operators: Collection[str]) -> dict[str, dict[str, CompiledVerdict]]:
    """For each operator the verdict of each dtype: the worst of its cases.

    Args:
        summary: the audit.
        operators: the operators that may be named ("aten::mode"). An entry counts for the first one it may be.
    """
    verdicts: dict[str, dict[str, CompiledVerdict]] = {}
    for operator in summary.operators:
        name = next((name for name in aten_names(operator.name) if name in operators), None)
        if name is not None:
            of_dtypes = verdicts.setdefault(name, {})
            for dtype, verdict in operator.dtypes.items():
                of_dtypes[dtype] = worst_compiled((of_dtypes.get(dtype, verdict), verdict)) or verdict
    return verdicts


def compiled_measurements(summary: CompiledSummary, operators: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """For each operator the dtypes of each verdict, as the registry stores them."""
    measured: dict[str, dict[str, list[str]]] = {}
    for name, of_dtypes in compiled_verdicts(summary, operators).items():
        for dtype, verdict in of_dtypes.items():
            measured.setdefault(name, {}).setdefault(verdict.value, []).append(dtype)
    return measured
