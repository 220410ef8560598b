"""What becomes of upstream's expected failures, pair by pair."""

from __future__ import annotations

import pytest

from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.coverage import from_data
from mpsmith.kernels.verification.dtype_gaps import DtypeGap, GapAnswer, counted, dtype_gaps

# Of these the CPU takes float32 and int64 alone; others are not known to the running torch.
TAKEN = {name: frozenset({"float32", "int64"}) for name in ("mode", "nn.functional.conv1d", "nn.functional.glu")}


@pytest.fixture(scope="module")
def gaps() -> list[DtypeGap]:
    data = release_data.load()
    return dtype_gaps(from_data(data, data.index("2.15.0")), TAKEN)


def answers(gaps: list[DtypeGap], opinfo: str) -> dict[str, tuple[GapAnswer, str]]:
    return {gap.dtype: (gap.answer, gap.by) for gap in gaps if gap.opinfo == opinfo}


@pytest.mark.parametrize(
    ("opinfo", "dtype", "answer", "by"),
    [
        ("mode", "int64", GapAnswer.kernel, "mode"),
        ("nn.functional.pdist", "float32", GapAnswer.kernel, "pdist"),
        ("linalg.matrix_sqrth", "complex64", GapAnswer.kernel, "eigh"),
        ("nn.functional.linear", "int16", GapAnswer.override, "int_mm"),
        ("nn.functional.interpolate.area", "float16", GapAnswer.override, "adaptive_avg_pool3d"),
        ("linalg.tensorinv", "complex64", GapAnswer.override, "complex_triangular"),
        ("double", "int8", GapAnswer.hardware, "float64, which no Apple GPU has"),
        ("item", "float32", GapAnswer.other, "it returns no tensor that could have a gradient"),
        ("nn.functional.glu", "int16", GapAnswer.cpu_refuses, ""),
        ("nn.functional.conv1d", "int64", GapAnswer.override, "convolution"),
        ("nn.functional.conv_transpose3d", "float16", GapAnswer.override, "convolution"),
        ("nn.functional.interpolate.bicubic", "uint8", GapAnswer.override, "upsample_antialias_forward"),
        ("addr", "complex64", GapAnswer.override, "int_mm"),
        ("renorm", "complex64", GapAnswer.override, "embedding_renorm"),
        ("bincount", "int32", GapAnswer.hardware, "with weights the CPU's result is float64, which no Apple GPU has"),
        ("scatter_reduce.prod", "int64", GapAnswer.override, "scatter_product"),
    ],
)
def test_each_pair_has_an_answer(gaps: list[DtypeGap], opinfo: str, dtype: str, answer: GapAnswer, by: str) -> None:
    assert answers(gaps, opinfo)[dtype] == (answer, by)


def test_all_pairs_are_counted_and_marks_of_whole_opinfos_are_not(gaps: list[DtypeGap]) -> None:
    assert sum(counted(gaps).values()) == len(gaps)
    assert {gap.dtype for gap in gaps}.isdisjoint({"all"})
    assert list(counted(gaps)) == list(GapAnswer)
