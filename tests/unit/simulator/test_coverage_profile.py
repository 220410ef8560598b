from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.simulator.device.coverage_profile import CoverageProfile
from mpsmith.simulator.errors import SimulatorError

PROFILE = CoverageProfile(
    release="2.13.0",
    native=frozenset({"softshrink", "add.Tensor", "mode.values"}),
    sparse=frozenset({"add.Tensor"}),
    always_fallback=frozenset({"embedding_renorm_"}),
)


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    PROFILE.to_json(path)
    assert CoverageProfile.from_json(path) == PROFILE


def test_a_file_lists_names_in_order_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    PROFILE.to_json(path)
    lines = [line.strip(' ",') for line in path.read_text().splitlines()]
    assert lines.index("add.Tensor") < lines.index("mode.values") < lines.index("softshrink")


def test_equal_profiles_are_equal_and_hashable() -> None:
    same = CoverageProfile(PROFILE.release, PROFILE.native, PROFILE.sparse, PROFILE.always_fallback)
    assert {PROFILE, same} == {PROFILE}


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match=r"cannot read the coverage profile .*none\.json: No such file"):
        CoverageProfile.from_json(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not a JSON file"),
        ("[]", "it should hold one JSON object"),
        ('{"release": "2.13.0"}', "its keys should be always_fallback, native, release, sparse, not release"),
        ('{"release": 2, "native": [], "sparse": [], "always_fallback": []}', "release should be a string"),
        (
            '{"release": "2", "native": [1], "sparse": [], "always_fallback": []}',
            "native should be a list of overload names",
        ),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(content)
    with pytest.raises(SimulatorError, match=problem):
        CoverageProfile.from_json(path)


def test_the_module_does_not_import_torch() -> None:
    package = "mpsmith.simulator.device"
    script = f"import {package}.coverage_profile, {package}.loading, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.lower()) is False
