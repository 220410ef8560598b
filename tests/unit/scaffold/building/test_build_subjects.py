"""What `mpsmith build` takes, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.building.subject import subject_at
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.manifest import NAME, Manifest


def test_a_file_becomes_a_module_beside_it(tmp_path: Path) -> None:
    source = tmp_path / "CustomSoftshrink.mm"
    source.write_text("#include <torch/extension.h>\n")
    subject = subject_at(source)
    assert (subject.name, subject.out, subject.arc, subject.is_file) == ("CustomSoftshrink", tmp_path, True, True)


def test_torchs_own_utilities_are_compiled_without_reference_counting(tmp_path: Path) -> None:
    source = tmp_path / "Eye.mm"
    source.write_text("#include <ATen/native/mps/OperationUtils.h>\n")
    assert subject_at(source).arc is False
    assert subject_at(source, ["-DA", "-fobjc-arc"]).arc is True
    with pytest.raises(ScaffoldError, match="--flags is for one file"):
        subject_at(tmp_path, ["-DA"])


def test_a_folder_is_built_by_its_setup_script(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    assert not subject_at(tmp_path).is_file


@pytest.mark.parametrize(
    ("target", "said"),
    [("shader", "need no build: .*--run"), ("upstream", "patch against PyTorch"), ("", "give one .mm file")],
)
def test_a_folder_without_setup_py_names_the_next_command(tmp_path: Path, target: str, said: str) -> None:
    if target:
        (tmp_path / NAME).write_text(Manifest("aten::mode", target, "sort", "2.13.0").to_json())
    with pytest.raises(ScaffoldError, match=said):
        subject_at(tmp_path)


def test_paths_that_cannot_be_built_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="there is no file or folder"):
        subject_at(tmp_path / "gone.mm")
    (tmp_path / "kernel.metal").write_text("")
    with pytest.raises(ScaffoldError, match=r"not an Objective-C\+\+ file"):
        subject_at(tmp_path / "kernel.metal")
    (tmp_path / "my-kernel.mm").write_text("")
    with pytest.raises(ScaffoldError, match="cannot import a module of this name"):
        subject_at(tmp_path / "my-kernel.mm")
