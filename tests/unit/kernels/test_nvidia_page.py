"""The published table of an NVIDIA GPU: its numbers are those of the published timings; what is slow has a reason."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mpsmith.cache import PACKAGE

PAGE = (PACKAGE / "docs" / "nvidia.md").read_text(encoding="utf-8")
TIMINGS: list[dict[str, Any]] = json.loads((PACKAGE / "docs" / "nvidia_timings.json").read_text())["timings"]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| `[\w.]+` \|", line) and line.count("|") == 15
]
HALF_OF_A_COPY, AS_TORCH = (6, 9, 10, 11), (2, 7, 12)


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


class TestNvidiaPage:
    def test_every_timed_operator_has_a_row(self) -> None:
        timed = {each["overload"].removeprefix("aten::") for each in TIMINGS if each.get("kernel")}
        assert timed == {row[0].strip("`") for row in ROWS}

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
    def test_what_is_slow_has_a_reason(self, row: list[str]) -> None:
        far = [number(row[i]) < 0.5 for i in HALF_OF_A_COPY if row[i] != "–"]
        behind = [number(row[i]) < 0.99 for i in AS_TORCH if row[i] != "–"]
        slow = any(far + behind)
        assert row[-1] or not slow

    def test_the_times_are_those_of_the_data(self) -> None:
        one = (2**20, "float32", "contiguous")
        medians = {
            each["overload"].removeprefix("aten::"): each["kernel"]
            for each in TIMINGS
            if each.get("kernel") and (each["elements"], each["dtype"], each["layout"]) == one
        }
        shown = {row[0].strip("`"): number(row[1]) for row in ROWS}
        assert len(medians) > 35
        assert {name: shown[name] for name in medians} == pytest.approx(medians, rel=0.01)
