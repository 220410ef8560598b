"""What a changed tree may compute otherwise than its base, and what is audited for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.cli.host_code import touched_operators
from mpsmith.errors import MpsmithError
from mpsmith.simulator.upstream.manifest import BuiltFile, TreeBuild, write_manifest
from mpsmith.simulator.upstream.operations import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from mpsmith.simulator.upstream.tree_changes import differing_files, touched_overloads

FILES = (
    BuiltFile("Lerp", ("lerp.Tensor_out", "_no_such_overload")),
    BuiltFile("Sort", ("sort.values_stable",)),
    BuiltFile("Scalar", ()),
)


@pytest.fixture
def trees(tmp_path: Path) -> list[TreeBuild]:
    for name in ("base", "changed"):
        root = tmp_path / name
        texts = {OPERATIONS / f"{file.name}.mm": file.name for file in FILES}
        texts[OPERATIONS / "Sort.mm"] = "#include <ATen/native/mps/Sorting_metallib.h>"
        texts |= {KERNELS / "Sorting.metal": "kernel", NATIVE_FUNCTIONS: "- func: sort", Path("setup.py"): name}
        texts[NATIVE_FUNCTIONS.with_name("Sorting.cpp")] = name  # of the CPU
        for place, text in texts.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text)
    return [TreeBuild(str(tmp_path / name), "", FILES) for name in ("base", "changed")]


def change(trees: list[TreeBuild], *places: Path) -> None:
    for place in places:
        (Path(trees[1].source) / place).write_text("changed")


def folders(trees: list[TreeBuild], tmp_path: Path) -> list[str]:
    for number, tree in enumerate(trees):
        write_manifest(tmp_path / str(number), tree)
    return [str(tmp_path / str(number)) for number in range(len(trees))]


def test_a_file_touches_its_overloads_and_metal_source_those_of_its_hosts(trees: list[TreeBuild]) -> None:
    assert touched_overloads(*trees) == frozenset()
    change(trees, OPERATIONS / "Lerp.mm")
    assert touched_overloads(*trees) == {"aten::lerp.Tensor_out", "aten::_no_such_overload"}
    change(trees, KERNELS / "Sorting.metal")
    assert touched_overloads(*trees) == {"aten::lerp.Tensor_out", "aten::_no_such_overload", "aten::sort.values_stable"}


@pytest.mark.parametrize("place", [NATIVE_FUNCTIONS, OPERATIONS.parent / "OperationUtils.h"])
def test_a_shared_file_touches_every_operator(trees: list[TreeBuild], tmp_path: Path, place: Path) -> None:
    change(trees, OPERATIONS / "Lerp.mm", place)
    assert touched_overloads(*trees) is None
    assert touched_operators(folders(trees, tmp_path)) == ()


def test_a_file_that_is_in_one_tree_alone_differs(trees: list[TreeBuild]) -> None:
    (Path(trees[0].source) / OPERATIONS / "Sort.mm").unlink()
    assert differing_files(*(Path(tree.source) for tree in trees)) == [OPERATIONS / "Sort.mm"]


def test_changed_operators_with_cases_are_audited(trees: list[TreeBuild], tmp_path: Path) -> None:
    change(trees, OPERATIONS / "Lerp.mm")
    assert touched_operators(folders(trees, tmp_path)) == ("aten::lerp.Tensor_out",)


def test_trees_that_do_not_differ_in_an_operator_are_refused(trees: list[TreeBuild], tmp_path: Path) -> None:
    for place in (None, OPERATIONS / "Scalar.mm"):
        change(trees, *([place] if place else []))
        with pytest.raises(MpsmithError, match="do not differ in an operator: name some with --ops"):
            touched_operators(folders(trees, tmp_path))


def test_one_tree_and_releases_are_audited_whole(trees: list[TreeBuild], tmp_path: Path) -> None:
    assert touched_operators(folders(trees[:1], tmp_path)) == ()
    releases = [TreeBuild(release, release, FILES) for release in ("2.6.0", "2.7.0")]
    assert touched_operators(folders(releases, tmp_path)) == ()
