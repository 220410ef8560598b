"""Launches in Python against the kernel's signature: what is bound, launch by launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ziglang")
torch = pytest.importorskip("torch")

from mpsmith import kernels  # noqa: E402
from mpsmith.scaffold.errors import ScaffoldError  # noqa: E402
from mpsmith.scaffold.proof import checking, family_launches  # noqa: E402
from mpsmith.scaffold.proof.family_launches import NOT_RUN, check_family_launches, family_of, python_of  # noqa: E402
from mpsmith.scaffold.proof.launch_recorder import LaunchRecord, recording  # noqa: E402
from mpsmith.simulator import metal  # noqa: E402

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void scaled(device float* out, device const float* in, constant long& n, constant float& factor,
    uint i [[thread_position_in_grid]]) { if (i < n) out[i] = in[i] * factor; }
kernel void halved(device half* out, device const half* in, uint i [[thread_position_in_grid]]) { out[i] = in[i] / 2; }
kernel void picked(device float* out, device const int* at, uint i [[thread_position_in_grid]]) { out[i] = at[i]; }
kernel void few [[max_total_threads_per_threadgroup(64)]] (device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = i; }
"""
FOLDER = Path(kernels.__file__).resolve().parent


@pytest.fixture(scope="module")
def library() -> metal.ShaderLibrary:
    return metal.compile(SOURCE)


def launched(kernel: metal.SimulatedKernel, *arguments: Any, **options: Any) -> LaunchRecord:
    record = LaunchRecord()
    with recording(record):
        try:
            kernel(*arguments, **options)
        except RuntimeError:
            assert record.findings  # reported before the launch refuses it
    return record


def tensors(count: int, dtype: torch.dtype = torch.float32) -> list[Any]:
    return [torch.ones(8, dtype=dtype) for _ in range(count)]


def test_a_launch_that_fits_is_counted_and_runs(library: metal.ShaderLibrary) -> None:
    out, given = tensors(2)
    record = launched(library.scaled, out, given, 8, 3.0)
    assert (record.launches, list(record.findings)) == (1, [])
    assert out.tolist() == [3.0] * 8


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("scaled", [*tensors(2), 8], "buffer 3, factor, is not bound"),
        ("scaled", [*tensors(2), 8, 2.0, 1], "5 arguments are bound, and the kernel has buffers for 4"),
        ("scaled", [*tensors(2), 2.0, 8], "buffer 2, n, takes 8 bytes, and 4 are bound"),
        ("scaled", [*tensors(2), 8, 2], "buffer 3, factor, passes integers by value"),
        ("scaled", [*tensors(2), 8, *tensors(1)], "buffer 3, factor, is a number, and memory of several elements"),
        ("scaled", [8, *tensors(1), 8, 2.0], "buffer 0, out, is written by the kernel, and a number is bound to it"),
        ("scaled", [*tensors(2, torch.float16), 8, 2.0], "buffer 0, out, holds numbers of type half"),
        ("halved", tensors(2), "buffer 1, in, holds numbers of type float, and the kernel reads numbers of type half"),
        ("picked", [*tensors(1), *tensors(1, torch.int64)], "buffer 1, at, holds int64, and the kernel reads int32"),
        ("picked", [*tensors(1), None], "buffer 1, at, cannot be bound"),
    ],
)
def test_reports_a_launch_that_does_not_fit(
    library: metal.ShaderLibrary, name: str, arguments: list[Any], message: str
) -> None:
    record = launched(getattr(library, name), *arguments, threads=8)
    assert any(message in finding.message and name in finding.message for finding in record.findings), record.findings


def test_the_hook_goes_when_the_recording_ends(library: metal.ShaderLibrary) -> None:
    before = metal.SimulatedKernel.__call__
    launched(library.halved, *tensors(2, torch.float16))
    assert metal.SimulatedKernel.__call__ is before


def test_only_metal_of_a_family_has_launches_in_python(tmp_path: Path) -> None:
    assert family_of(FOLDER / "mode" / "mode.metal") == "mode"
    assert family_of(FOLDER / "mode" / "mode.py") is None
    assert family_of(FOLDER / "shared" / "reduce.metal") is None
    assert family_of(tmp_path / "mode" / "mode.metal") is None
    assert FOLDER / "mode" / "cases.py" in python_of(FOLDER / "mode" / "mode.metal")


def test_of_a_family_its_folder_is_checked_without_what_a_patch_makes_whole() -> None:
    folder = Path(kernels.__file__).parent / "mode"
    assert checking.files_to_check(folder) == [folder / "mode.metal"]
    with pytest.raises(ScaffoldError, match=r"upstream\.mm is a part of a patch"):
        checking.files_to_check(folder / "upstream.mm")


def test_a_process_that_fails_is_an_error_and_no_device_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.metal"
    (error,) = check_family_launches(path, "there_is_no_such_family")
    assert error.severity == "error"
    assert "there is no family there_is_no_such_family" in error.message
    monkeypatch.setattr(family_launches.sys, "executable", "/bin/false")
    (failed,) = check_family_launches(path, "mode")
    assert failed.severity == "error"
    assert "ended with 1" in failed.message
    monkeypatch.setattr(family_launches, "NOTHING_TO_RUN_ON", 1)
    (note,) = check_family_launches(path, "mode")
    assert (note.severity, note.rule) == ("note", NOT_RUN)


def test_check_reports_errors_of_family_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    path = FOLDER / "mode" / "mode.metal"
    asked: list[str] = []

    def no_findings(path: Path, family: str) -> list[Any]:
        asked.append(family)
        return [metal.Diagnostic(str(path), 7, 0, "error", "sort_rows: buffer 3 is not bound", "launch")]

    monkeypatch.setattr(checking, "check_family_launches", no_findings)
    (result,) = checking.check_files([path], use_cache=False)
    assert asked == ["mode"]
    assert not result.accepted
    assert result.steps == ("metal", "launches")
