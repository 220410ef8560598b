from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from mpsmith.audit.compiled.defects.defect import Defect
from mpsmith.audit.compiled.defects.measuring import show
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.cli import app
from mpsmith.simulator import metal
from mpsmith.simulator.fallback_recorders import CounterRecorder
from support.commands import printed_json
from support.generator_faults import GeneratorFault, with_fault

BY_NUMBER = {defect.number: defect for defect in DEFECTS}


@pytest.fixture(scope="module", autouse=True)
def shaders_compile() -> None:
    metal.install()


@pytest.mark.parametrize("number", ["U1", "U2", "U8", "U10", "U11"])
def test_the_program_shows_the_defect(number: str) -> None:
    shown = show(BY_NUMBER[number], CounterRecorder())
    assert shown.has_defect
    assert shown.as_expected, shown.outcome.reason


def test_a_generator_without_the_defect_shows_a_right_result(tmp_path: Path) -> None:
    """U14 mended by a line: a number is written with the width that the program gives it."""
    mended = GeneratorFault(
        "a mended constant",
        "",
        "        return value_to_metal(val)\n\n    @staticmethod\n    def index_expr",
        '        return f"static_cast<{DTYPE_TO_METAL[dtype]}>({value_to_metal(val)})"\n\n'
        "    @staticmethod\n    def index_expr",
        (),
    )
    with with_fault(mended, tmp_path):
        shown = show(BY_NUMBER["U14"], CounterRecorder())
    assert not shown.has_defect
    assert show(BY_NUMBER["U14"], CounterRecorder()).as_expected


@pytest.mark.parametrize("number", ["U2", "U11"])
def test_the_script_that_a_mac_runs_says_so_too(number: str) -> None:
    defect: Defect = BY_NUMBER[number]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(defect.script(), f"{number}.py", "exec"), {"__name__": "__main__"})
    assert said.getvalue().splitlines()[-1] == "DIFFERENT"


def test_the_command_prints_json(fallback_enabled: None) -> None:
    (release,) = printed_json(app, "compiled", "defects", "U2")["releases"]
    assert release["cannot"] == ""
