"""Rules that explain many more cases than in the published audit are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpsmith.reports.rule_growth import PUBLISHED, grown_rules, published_counts

SETTINGS: dict[str, Any] = {"samples": "default", "seed": 0, "shipped": "2.13.0", "shipped_samples": "default"}
TEXT = """\
# Coverage

With torch 2.13.0; samples default, seed 0, ops all, dtypes all, kernels shipped by 2.13.0 in default cases.

| rule | cases | verdicts | reason |
|:---|---:|:---|:---|
| `one-rule` | 1,000 | 1,000 wrong | because |
| `another-rule` | 10 | 4 wrong, 6 missing | because |

| operator | verdict |
| `mul-not` | 7 | native |
"""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "coverage.md"
    path.write_text(TEXT)
    return path


def test_the_counts_are_those_of_the_table_of_rules(published: Path) -> None:
    assert published_counts(SETTINGS, published) == {"one-rule": 1000, "another-rule": 10}


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"ops": ["mul"]}, {"shipped": None}, {"host_code": "x"}, {"sources": ["forms"]}], ids=str
)
def test_an_audit_with_other_settings_is_not_compared(published: Path, change: dict[str, Any]) -> None:
    assert published_counts(SETTINGS | change, published) == {}
    assert grown_rules({"another-rule": 999}, SETTINGS | change, published) == []


def test_without_a_published_audit_nothing_is_compared(tmp_path: Path) -> None:
    assert published_counts(SETTINGS, tmp_path / "none.md") == {}


@pytest.mark.parametrize(
    ("cases", "named"),
    [
        ({"another-rule": 12}, []),
        ({"another-rule": 13}, ["another-rule 13, published 10"]),
        ({"new-rule": 1}, ["new-rule 1, published 0"]),
        ({"one-rule": 900, "another-rule": 0}, []),
    ],
    ids=str,
)
def test_growth_by_more_than_a_fifth_is_named(published: Path, cases: dict[str, int], named: list[str]) -> None:
    assert grown_rules(cases, SETTINGS, published) == named


def test_the_published_report_has_the_table() -> None:
    if not PUBLISHED.is_file():
        pytest.skip("no published report in this copy")
    assert "`no-kernel`" in PUBLISHED.read_text()
    of_make_audit = {"samples": "default", "seed": 0, "host_code": "2.13.0"}
    assert published_counts(of_make_audit)["no-kernel"] > 1000
