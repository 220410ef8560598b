from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Grade, UlpSensitivity
from mpsmith.audit.running import finding_launches as finding_launches
from mpsmith.audit.shipped.finding_result import FindingResult, FurthestElement
from mpsmith.cli import app
from support.commands import output, printed_json, refusal
from support.metal_libraries import write_metal_library


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that has the library of a release."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "shipped" / "2.99.0"
    folder.mkdir(parents=True)
    library = write_metal_library(folder / "metal_basic.metallib", {"hypot_dense_float_float": b"code"})
    (folder / "sections.json").write_text(json.dumps({"metal_basic": library.stat().st_size}))


PLACE = FurthestElement("outputs", 0, 0, "nan", "inf", "0xffc00000", "0x7f800000")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The releases and findings that were asked for; the first is wrong, the second not tried, all others right."""
    launches: list[tuple[str, list[str]]] = []

    def launch_findings(release, findings, on_result):  # type: ignore[no-untyped-def]
        launches.append((release, [finding.name for finding in findings]))
        results = []
        for number, finding in enumerate(findings):
            verdict = CaseVerdict.PASSED if number else CaseVerdict.WRONG
            grade = Grade.DISPATCH_ONLY if number == 1 else Grade.SHIPPED_KERNEL
            place, moved = (None, None) if number else (PLACE, UlpSensitivity.INSENSITIVE)
            results.append(FindingResult(finding.name, verdict, grade, "", ("k",), ("MPSGraph",), "(x)", place, moved))
            on_result(results[-1])
        return results

    monkeypatch.setattr(finding_launches, "launch_findings", launch_findings)
    return launches


NAMES = ("lgamma-of-infinity", "elu-of-small-numbers", "i0-of-halves")


def test_prints_a_line_per_finding(launched: list[tuple[str, list[str]]]) -> None:
    assert output(app, "shipped", "wrong", *NAMES, "--torch", "2.99.0").splitlines() == [
        "WRONG      lgamma-of-infinity: nan, CPU inf [not ULP-sensitive] (k)",
        "not tried  elu-of-small-numbers: MPSGraph",
        "right      i0-of-halves",
    ]
    assert launched == [("2.99.0", list(NAMES))]


def test_writes_a_script_and_json(launched: list[tuple[str, list[str]]], tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    printed = printed_json(app, "shipped", "wrong", "--torch", "2.99.0", "--script", str(script))
    assert printed["release"] == "2.99.0"
    assert [finding["name"] for finding in printed["findings"]] == launched[0][1]
    assert printed["findings"][0]["place"]["given_bits"] == "0xffc00000"
    compile(script.read_text(), "check.py", "exec")


def test_rejects_an_unknown_finding_with_a_hint() -> None:
    assert "no finding is called lgama-of-infinity (did you mean lgamma-of-infinity" in refusal(
        app, "shipped", "wrong", "lgama-of-infinity", "--torch", "2.99.0"
    )
