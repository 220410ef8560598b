"""An audit of one release's host code as two versions of macOS finds a report that only the older one shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import arm64_command

pytestmark = pytest.mark.network  # the wheel, and mpsmith check --setup


def test_softplus_of_a_transposed_tensor_is_wrong_on_macos_14_only(tmp_path: Path) -> None:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    asked = ("--host-code", "2.13.0", "--macos", "14.0,26", "--ops", "softplus", "--sources", "known wrong")
    command = [sys.executable, "-m", "mpsmith", "audit", *asked, "--workers", "1", "--json"]
    done = subprocess.run(
        [*command, "--store", str(tmp_path / "s.sqlite")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    older, newer = "2.13.0 (macOS 14.0)", "2.13.0 (macOS 26)"
    assert [audited["release"] for audited in printed["releases"]] == [older, newer]
    for audited in printed["releases"]:
        assert audited["grades"] == {"host code": audited["executed"]}  # no stand-in answered
    (row,) = printed["wrong_results"]
    assert row["case"].startswith("known wrong:softplus.#131736:"), row
    assert (row["change"], row["releases"]) == ("fixed", {older: "wrong", newer: "right"})
