"""Where the wrong answers that users reported come from."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.registry import known_wrong
from mpsmith.registry.known_wrong import examine
from mpsmith.registry.rendering import report_json, report_line
from mpsmith.simulator.air.container import LibraryFile

REPORT = """\
1:
  summary: Something is wrong.
  class: wrong result
  operators: [aten::hypot]
  cause: CAUSE
  cases:
    - call: torch.hypot
      args: [1, 2]
"""


def test_every_report_has_a_cause() -> None:
    assert [report.issue for report in known_wrong.load().values() if report.cause is None] == []


def test_a_cause_is_shown() -> None:
    report = known_wrong.load()[192507]
    assert "hypot_*" in report_line(report)
    assert report_json(report)["cause"] == {
        "part": "Metal kernel",
        "kernel": "hypot_*",
        "wrong_in": ["2.10.0", "2.13.0"],
        "right_from": "2.14.0",
    }
    assert "MPSGraph" in report_line(known_wrong.load()[96225])


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("{part: MPSgraph}", "5:17: .*MPSGraph"),
        ("{part: MPSGraph, kernel: hypot_*}", "a kernel is named where the part is 'Metal kernel', and only there"),
        ("{part: Metal kernel, note: unknown}", "a kernel is named where the part is 'Metal kernel', and only there"),
        ("{part: Metal kernel, kernel: hypot_*}", "a kernel needs wrong_in, .* or a note"),
        ("{part: unknown, right_from: 2.14.0}", "right_from needs wrong_in"),
        ("{part: unknown, because: of that}", "unknown key 'because'"),
        ("{part: Metal kernel, kernel: hypot_*, wrong_in: [2.10.0]}", "5:"),
    ],
)
def test_a_wrong_cause_is_named_with_its_place(tmp_path: Path, cause: str, message: str) -> None:
    (tmp_path / "own.yaml").write_text(REPORT.replace("CAUSE", cause))
    reports, problems = examine(tmp_path)
    assert reports == {}
    assert len(problems) == 1
    assert re.search(message, str(problems[0]))


@pytest.mark.network
def test_the_kernels_of_causes_are_in_their_releases() -> None:
    for report in known_wrong.load().values():
        cause = report.cause
        assert cause is not None
        for release in {*(cause.wrong_in or ()), *([cause.right_from] if cause.right_from else [])}:
            names = LibraryFile(shipped_library(release)).names
            for pattern in str(cause.kernel).split(", "):
                assert any(fnmatchcase(name, pattern) for name in names), (report.issue, release, pattern)
