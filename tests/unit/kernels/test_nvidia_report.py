"""The page and the picture of kernels timed on an NVIDIA GPU, without one."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from mpsmith.kernels.verification.nvidia_report import HEADERS, picture, row_of, write_report
from mpsmith.kernels.verification.nvidia_timing import NvidiaTiming, _is_taken_apart


def timing(elements: int = 2**20, layout: str = "contiguous", **measured: float) -> NvidiaTiming:
    return NvidiaTiming("shrink", "aten::softshrink.out", "float32", layout, elements, 8 * elements, **measured)  # type: ignore[arg-type]


class TestTimingRows:
    def test_every_time_stands_beside_ours(self) -> None:
        one = timing(kernel=2.0, cuda=3.0, copy=1.0, compiled=4.0, shipped=5.0, cpu=6.0, operations=4000.0)
        row = dict(zip(HEADERS, row_of(one), strict=True))
        assert row["of a copy"] == 0.5
        assert row["GFLOP/s"] == 2.0
        assert [row[f"{other} / ours"] for other in ("cuda", "compiled", "shipped", "cpu")] == [1.5, 2.0, 2.5, 3.0]
        assert row["note"] == "waits for the GPU"

    def test_what_was_not_timed_is_open(self) -> None:
        row = dict(zip(HEADERS, row_of(timing(kernel=2.0)), strict=True))
        assert {row[name] for name in HEADERS if name.endswith("/ ours")} == {None}
        assert row["GFLOP/s"] is None


class TestPicture:
    def test_it_has_a_curve_an_operator_and_the_roof(self) -> None:
        shown = [timing(2**power, kernel=2.0, copy=1.0) for power in (10, 20)]
        drawn = ElementTree.fromstring(picture([*shown, timing(layout="strided", kernel=9.0, copy=1.0)], "A <GPU>"))
        titles = [element.text for element in drawn.iter() if element.tag.endswith("title")]
        assert titles == ["aten::softshrink.out", "a copy"]

    def test_a_faster_kernel_stands_higher(self) -> None:
        drawn = [ElementTree.fromstring(picture([timing(kernel=time, copy=1.0)], "GPU")) for time in (1.0, 10.0)]
        heights = [
            float(next(e for e in each.iter() if e.tag.endswith("polyline")).attrib["points"].split(",")[1])
            for each in drawn
        ]
        assert heights[0] < heights[1]

    def test_page_and_picture_are_written(self, tmp_path: Path) -> None:
        write_report(tmp_path, [timing(kernel=2.0, copy=1.0)], "GPU", "2.13.0")
        assert "NVIDIA, not Apple" in (tmp_path / "nvidia.md").read_text()
        assert (tmp_path / "nvidia.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("operator", "expected"), [("softshrink", True), ("glu_jvp", False)])
def test_inductor_takes_some_operators_apart(operator: str, expected: bool) -> None:
    overload = getattr(torch.ops.aten, operator).default
    assert _is_taken_apart(overload) is expected
