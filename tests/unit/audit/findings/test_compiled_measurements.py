"""What a run under torch.compile measured, by the names of the registry."""

from __future__ import annotations

from mpsmith.audit.compiled.verdicts import CompiledVerdict
from mpsmith.audit.findings.compiled.measurements import compiled_measurements
from mpsmith.audit.findings.compiled.summary import CompiledOperator, CompiledSummary
from mpsmith.audit.store.records import Run

METAL, WRONG = CompiledVerdict.METAL, CompiledVerdict.WRONG


def operator(name: str, **dtypes: CompiledVerdict) -> CompiledOperator:
    return CompiledOperator(name, METAL, dtypes, (), (), 1, 0, 0, ())


def test_entries_of_one_operator_are_together_and_the_worst_counts() -> None:
    operators = (
        operator("nn.functional.relu", float32=METAL, int64=METAL),
        operator("relu", int64=WRONG),
        operator("linalg.svd", float32=METAL),
        operator("nn.BatchNorm2d", float32=METAL),
    )
    summary = CompiledSummary(Run(1, "", "", {}, {}), operators, ())
    assert compiled_measurements(summary, {"aten::relu", "aten::linalg_svd"}) == {
        "aten::relu": {"metal": ["float32"], "wrong": ["int64"]},
        "aten::linalg_svd": {"metal": ["float32"]},
    }
