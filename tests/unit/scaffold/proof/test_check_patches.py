"""Patches against PyTorch's tree: made, applied and judged with the files that ship in the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.releases.surface import native_functions
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.operators.kinds import kind_of
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.proof.patches import check_patch
from mpsmith.scaffold.proof.toolchain import Toolchain
from mpsmith.scaffold.release_files import COMMON_MPS, NATIVE_FUNCTIONS, files_of
from mpsmith.scaffold.targets import Request
from mpsmith.scaffold.targets.upstream import native_code
from mpsmith.scaffold.targets.upstream import patch as upstream
from mpsmith.scaffold.targets.upstream.expected_failures import without_entries
from mpsmith.scaffold.targets.upstream.git_patch import added, changed
from mpsmith.scaffold.targets.upstream.yaml_rows import mps_kernels, rows_by_overload, with_mps_rows

YAML = """\
- func: mode(Tensor self) -> Tensor
  variants: function, method
  dispatch:
    CPU, CUDA: mode

- func: ndtri.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA: ndtri_out
    MTIA: ndtri_out_mtia
  tags: pointwise

- func: conv2d(Tensor self) -> Tensor
"""


def test_a_row_goes_behind_the_others() -> None:
    after = with_mps_rows(YAML, {"mode": "mode_mps"})
    assert "    CPU, CUDA: mode\n    MPS: mode_mps\n\n" in after
    assert len(after.splitlines()) == len(YAML.splitlines()) + 1


def test_a_shared_kernel_only_gets_the_key() -> None:
    assert "    CPU, CUDA, MPS: ndtri_out\n" in with_mps_rows(YAML, {"ndtri.out": "ndtri_out"})


def test_a_row_that_is_there_is_replaced() -> None:
    once = with_mps_rows(YAML, {"ndtri.out": "ndtri_out"})
    twice = with_mps_rows(once, {"ndtri.out": "ndtri_out_metal"})
    assert "    CPU, CUDA: ndtri_out\n" in twice
    assert twice.count("MPS") == 1


def test_rows_by_key() -> None:
    rows = rows_by_overload(YAML, ["ndtri.out"])
    assert rows == {"ndtri.out": {"CPU": "ndtri_out", "CUDA": "ndtri_out", "MTIA": "ndtri_out_mtia"}}


def test_the_name_of_a_kernel_is_the_shared_one_or_an_own_one_that_is_free() -> None:
    rows = rows_by_overload(YAML, ["ndtri.out"])
    assert mps_kernels(rows, shared=True) == {"ndtri.out": "ndtri_out"}
    assert mps_kernels(rows, shared=False) == {"ndtri.out": "ndtri_out_mps"}
    assert mps_kernels({"ndtri.out": {"CUDA": "ndtri_out_mps"}}, shared=True) == {"ndtri.out": "ndtri_out_metal"}


def test_a_tag_that_torchgen_asks_for_is_added_once() -> None:
    tagged = native_code._with_tag(YAML, "mode")
    assert native_code._with_tag(YAML, "ndtri.out") == YAML
    assert native_code._with_tag(tagged, "mode") == tagged
    added = [line for line in tagged.splitlines() if line not in YAML.splitlines()]
    assert added == ["  tags: nondeterministic_seeded"]
    assert tagged.index(added[0]) < tagged.index("- func: ndtri.out")


@pytest.mark.parametrize(("overload", "message"), [("conv2d", "composed of others"), ("gone", "no entry for gone")])
def test_overloads_that_take_no_row_are_errors(overload: str, message: str) -> None:
    with pytest.raises(ScaffoldError, match=message):
        with_mps_rows(YAML, {overload: "x"})


def test_entries_of_unimplemented_operators_are_removed() -> None:
    text = (
        'A = 1\nUNIMPLEMENTED_XFAILLIST = {\n    "mode": None,\n    "take": [\n        1,\n    ],\n    "x": None,\n}\n'
        'OTHER = {\n    "mode": None,\n}\n'
    )
    assert without_entries(text, ["mode", "take"]) == (
        'A = 1\nUNIMPLEMENTED_XFAILLIST = {\n    "x": None,\n}\nOTHER = {\n    "mode": None,\n}\n'
    )


def test_a_patch_part_for_a_file_that_does_not_change_is_empty() -> None:
    assert changed("a", "x\n", "x\n") == ""
    assert "\\ No newline at end of file" in added("b", "x")


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    """The files of the installed torch where those of a macOS wheel would stand."""
    folder = tmp_path_factory.mktemp("wheel")
    installed = native_functions.installed_path()
    site = installed.parents[4]
    for place, source in (
        (NATIVE_FUNCTIONS, installed),
        (NATIVE_FUNCTIONS.with_name("tags.yaml"), installed.with_name("tags.yaml")),
        (COMMON_MPS, site / COMMON_MPS),
    ):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(source.read_bytes())
    return Toolchain("2.13.0", folder, folder, folder)


@pytest.fixture(scope="module")
def patch() -> str:
    source = source_of(None)
    operator = source.operator("mode")
    request = Request(operator, kind_of(operator).kind, ("mode",))
    return upstream.generate(request, upstream.tree_of(files_of(source.release))).files["mode.patch"]


def test_a_generated_patch_applies_and_torchgen_accepts_the_result(
    toolchain: Toolchain, patch: str, tmp_path: Path
) -> None:
    file = tmp_path / "mode.patch"
    file.write_text(patch)
    assert check_patch(file, patch, toolchain.torch) == []


def test_a_patch_that_does_not_apply_is_refused(toolchain: Toolchain, patch: str, tmp_path: Path) -> None:
    file = tmp_path / "mode.patch"
    file.write_text(patch.replace("CPU, CUDA: mode", "CPU, CUDA: gone"))
    (finding,) = check_patch(file, file.read_text(), toolchain.torch)
    assert finding.severity == "error"
    assert "patch failed: aten/src/ATen/native/native_functions.yaml" in finding.message
    assert finding.message.endswith(f"another release: mpsmith check --setup --torch RELEASE {file}")
    (finding,) = check_patch(file, file.read_text(), toolchain.torch, "2.15.0")
    assert finding.message.endswith(f"it was made for torch 2.15.0: mpsmith check --setup --torch 2.15.0 {file}")


def test_a_row_that_torchgen_refuses_is_refused(toolchain: Toolchain, patch: str, tmp_path: Path) -> None:
    file = tmp_path / "mode.patch"
    file.write_text(patch.replace("+    MPS: mode_mps", "+    MSP: mode_mps"))
    (finding,) = check_patch(file, file.read_text(), toolchain.torch)
    assert "torchgen refuses the patched native_functions.yaml" in finding.message
    assert "MSP" in finding.message


def test_a_file_that_the_wheel_lacks_is_not_judged(toolchain: Toolchain, patch: str, tmp_path: Path) -> None:
    file = tmp_path / "mode.patch"
    extra = changed("test/test_mps.py", "a\n", "b\n")
    file.write_text(patch + extra)
    (finding,) = check_patch(file, file.read_text(), toolchain.torch)
    assert (finding.severity, finding.message) == ("note", "test/test_mps.py is not in the wheel: not judged")


def test_a_release_without_the_list_of_failures_judges_the_rest(
    toolchain: Toolchain, patch: str, tmp_path: Path
) -> None:
    """As torch 2.6.0, whose wheel has no common_mps.py."""
    wheel, file = tmp_path / "wheel", tmp_path / "mode.patch"
    wheel.mkdir()
    (wheel / "torchgen").symlink_to(toolchain.torch / "torchgen")
    file.write_text(patch)
    findings = check_patch(file, patch, wheel)
    assert all(finding.severity == "note" for finding in findings), findings
    file.write_text(patch.replace("+    MPS: mode_mps", "+    MSP: mode_mps"))
    assert "torchgen refuses" in check_patch(file, file.read_text(), wheel)[-1].message
