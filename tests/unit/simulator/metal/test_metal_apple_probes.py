"""Which of 73 programs the strict check refuses, and why not the others: `apple_probes.yaml` is the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpsmith.simulator import metal
from mpsmith.simulator.metal.compiler import METAL_VERSIONS
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
PROBES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("apple_probes.yaml").read_text("utf-8"))
DOCUMENT = Path(metal.__file__).parents[2] / "docs" / "metal_on_the_host.md"
# Where versions agree, one is asked.
CASES = [
    (probe, version)
    for probe in PROBES
    for version in (METAL_VERSIONS if 0 < len(probe["refused"]) < len(METAL_VERSIONS) else METAL_VERSIONS[:1])
]


@pytest.mark.parametrize(("probe", "version"), CASES, ids=[f"{probe['name']}-{version}" for probe, version in CASES])
def test_the_check_agrees_with_the_table(probe: dict[str, Any], version: metal.MetalVersion) -> None:
    source = probe["program"] if probe.get("whole") else PREAMBLE + probe["program"]
    diagnostics = metal.check(source, strict=True, metal=version)
    assert any(d.severity == "error" for d in diagnostics) == (version in probe["refused"]), diagnostics


def test_each_accepted_program_has_a_reason() -> None:
    assert [p["name"] for p in PROBES if len(p["refused"]) < len(METAL_VERSIONS) and not p.get("accepted")] == []
    assert [p["name"] for p in PROBES if len(p["refused"]) == len(METAL_VERSIONS) and p.get("accepted")] == []


def test_the_document_counts_them() -> None:
    before = sum(probe["before"] == "refused" for probe in PROBES)
    now = [sum(version in probe["refused"] for probe in PROBES) for version in METAL_VERSIONS]
    sentence = f"Of {len(PROBES)} probes clang refuses {before}, and the check {now[0]} (3.2: {now[1]}, 4.0: {now[2]})"
    assert sentence in DOCUMENT.read_text("utf-8")
