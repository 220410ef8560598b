"""`mpsmith shader run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpsmith.cli import app
from mpsmith.errors import MpsmithError
from support.commands import typed
from support.json_document import documented
from support.needs import needs_metal_on_host

needs_metal_on_host()

AXPY = """#include <metal_stdlib>
using namespace metal;
kernel void axpy(device float* out, constant float* x, constant float& a, uint i [[thread_position_in_grid]]) {
  out[i] = a * x[i];
}
"""


def write(folder: Path, source: str) -> str:
    path = folder / "program.metal"
    path.write_text(source)
    return str(path)


def test_run_prints_the_arrays_and_says_that_they_are_simulated(tmp_path: Path) -> None:
    file, out = write(tmp_path, AXPY), tmp_path / "out.npy"
    arguments = ["--arg", "float[4]", "--arg", "float[4]:arange", "--arg", "2.5"]
    result = typed(app, "shader", "run", file, "axpy", *arguments, "--out", f"0={out}")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[:2] == [
        "axpy: simulated on the CPU, mode checked",
        "  0: float32[4] 0.0 2.5 5.0 7.5",
    ]
    np.testing.assert_array_equal(np.load(out), np.arange(4) * 2.5)


def test_run_prints_json(tmp_path: Path) -> None:
    arguments = ["--arg", "float[2]", "--arg", "float[2]:arange", "--arg", "2.5", "--json"]
    result = typed(app, "shader", "run", write(tmp_path, AXPY), "axpy", *arguments)
    printed = documented("shader run", result.output)
    assert (printed["simulated"], printed["kernel"], printed["written"]) == (True, "axpy", [])
    assert printed["arguments"] == [
        {"dtype": "float32", "shape": [2], "values": [0.0, 2.5]},
        {"dtype": "float32", "shape": [2], "values": [0.0, 1.0]},
        2.5,
    ]


def test_run_takes_arrays_from_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full(3, 4.0, np.float32))
    arguments = f"--arg float[3] --arg @{tmp_path}/x.npy --arg 3".split()
    words = ["shader", "run", write(tmp_path, AXPY), "axpy", *arguments]
    result = typed(app, *words, "--cast", "2=fp16")
    assert isinstance(result.exception, MpsmithError)  # a half is too small for the float that the kernel reads
    result = typed(app, *words[:-1], "3.0")
    assert "12.0 12.0 12.0" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "no-such.metal", "k"], "cannot read no-such.metal: No such file"),
        (["run", "FILE", "axpi"], "did you mean axpy?"),
        (["run", "FILE", "axpy", "--arg", "what"], "--arg what: give a number"),
        (["run", "FILE", "axpy", "--arg", "quad[3]"], "unknown type quad"),
        (["run", "FILE", "axpy", "--arg", "int[3]:many"], "unknown content many"),
        (["run", "FILE", "axpy", "--arg", "@none.npy"], "none.npy"),
        (["run", "FILE", "nothing"], "has no kernel 'nothing' (it has axpy)"),
        (["run", "FILE", "axpy", "--threads", "many"], "give numbers such as"),
        (["run", "FILE", "axpy", "--out", "4=x.npy"], "argument 4 is not an array"),
        (["run", "FILE", "axpy", "--cast", "fp16"], "give INDEX=VALUE"),
    ],
)
def test_rejects_bad_arguments(tmp_path: Path, words: list[str], message: str) -> None:
    file = write(tmp_path, AXPY)
    result = typed(app, "shader", *(file if w == "FILE" else w for w in words))
    assert isinstance(result.exception, MpsmithError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_kernel_that_never_ends_is_stopped(tmp_path: Path) -> None:
    source = "kernel void k(device volatile float* x [[buffer(0)]]) { while (x[0] < 1.0f) { x[0] = 0.0f; } }"
    words = ["shader", "run", write(tmp_path, source), "k", "--arg", "float[1]", "--limit", "2"]
    done = subprocess.run([sys.executable, "-m", "mpsmith", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "error: k did not end within 2 s; --limit SECONDS gives it more"
