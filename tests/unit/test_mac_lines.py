"""The report of the lines that run on a Mac alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import mac_lines

SOURCE = """import platform


def f(run):
    if platform.system() == "Darwin":
        a = 1
        b = 2
    else:
        c = 3
    if run.simulated:
        return 4
    d = 5


def g(run):
    if not run.simulated and run.ready:
        e = 6
    return 7
"""


def test_lines_behind_a_condition_run_only_on_a_mac(tmp_path: Path) -> None:
    file = tmp_path / "audit" / "some.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    assert mac_lines.mac_only_lines(tmp_path) == {file: {6, 7, 12, 17}}


def test_a_process_notes_the_lines_that_it_executes(tmp_path: Path) -> None:
    program = (
        "from support import mac_lines; mac_lines.record(); from mpsmith.reports.evidence import preflight as p; "
        "p.what_to_do('x'); p.what_to_do('y')"
    )
    environment = {**os.environ, mac_lines.VARIABLE: str(tmp_path), "PYTHONPATH": str(mac_lines.ROOT / "tests")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (notes,) = tmp_path.glob("*.txt")
    source = (mac_lines.ROOT / "reports/evidence/preflight.py").read_text().splitlines()
    noted = [line.removeprefix("reports/evidence/preflight.py:") for line in notes.read_text().splitlines()]
    assert [source[int(line) - 1].split()[0] for line in noted] == ["is_missing", "return"]


@pytest.mark.parametrize("module", mac_lines.MODULES)
def test_the_listed_functions_exist(module: str) -> None:
    tree = ast.parse((mac_lines.ROOT / module).read_text("utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert set(mac_lines.MODULES[module]) <= names


def test_the_share_counts_recorded_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{p.relative_to(mac_lines.ROOT)}:{n}" for p, at in mac_lines.mac_only_lines().items() for n in at]
    (tmp_path / "1.txt").write_text("\n".join(lines))
    assert mac_lines.main(tmp_path) == 0
    (tmp_path / "1.txt").write_text("\n".join(lines[1:]))
    mac_lines.main(tmp_path)
    assert f"{len(lines) - 1} of {len(lines)} lines of a Mac were executed" in capsys.readouterr().out
