"""Processes that a program starts have the simulated device too, where an environment variable asks for it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from ..conftest import FreshPython


def test_the_variable_brings_the_device_at_the_import_of_torch(fresh_python: FreshPython) -> None:
    script = "import torch; print((torch.ones(2, device='mps') + 1).tolist(), torch.backends.mps.is_available())"
    assert fresh_python(script, MPSMITH_SIMULATE="1").stdout == "[2.0, 2.0] True\n"
    assert fresh_python(script, MPSMITH_SIMULATE="0", check=False).returncode == 1


def test_a_release_gives_its_coverage(fresh_python: FreshPython) -> None:
    script = """
    import torch
    from mpsmith.simulator.device import loading
    print(loading.loaded_profile().release)
    """
    assert fresh_python(script, MPSMITH_SIMULATE="2.0.1").stdout == "2.0.1\n"


def test_a_release_without_data_is_a_warning(fresh_python: FreshPython) -> None:
    done = fresh_python("import torch; print(torch.ones(2).tolist())", MPSMITH_SIMULATE="0.1")
    assert done.stdout == "[1.0, 1.0]\n"
    assert "MPSMITH_SIMULATE is set, but there is no simulated mps device: no data for torch 0.1" in done.stderr


def test_spawned_processes_and_their_children_have_it(fresh_python: FreshPython) -> None:
    script = """
    import multiprocessing, subprocess, sys
    if __name__ == "__main__":
        total = "__import__('torch').ones(2, device='mps').sum().item()"
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(eval, (total,)))
        subprocess.run([sys.executable, "-c", f"print({total})"], check=True)
    """
    assert fresh_python(script, MPSMITH_SIMULATE="1").stdout.split() == ["2.0", "2.0"]


def test_a_traced_program_hands_its_device_on(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    child = "from mpsmith.simulator.device import loading; import torch; print(loading.loaded_profile().release)"
    program.write_text(
        textwrap.dedent(
            f"""
            import subprocess, sys
            subprocess.run([sys.executable, "-c", {child!r}], check=True)
            """
        )
    )
    command = [sys.executable, "-m", "mpsmith", "trace", "--device", "simulated", "--profile", "2.0.1", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "2.0.1"


def test_commands_choose_their_own_device(fresh_python: FreshPython, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch; torch.ones(2, device='mps').neg()")
    script = f"""
    import runpy, sys
    sys.argv = ["mpsmith", "trace", "--device", "simulated", "--profile", "2.0.1", {str(program)!r}]
    runpy.run_module("mpsmith", run_name="__main__")
    """
    done = fresh_python(script, MPSMITH_SIMULATE="1")
    assert "SIMULATED" in done.stdout
