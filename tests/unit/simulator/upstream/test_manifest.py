"""What was built of a tree is noted, found again while nothing changed, and loaded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.simulator.errors import UpstreamError
from mpsmith.simulator.upstream import kept_builds, whole_tree
from mpsmith.simulator.upstream.kept_builds import kept_build
from mpsmith.simulator.upstream.manifest import BuiltFile, TreeBuild, read_manifest, write_manifest
from mpsmith.simulator.upstream.operations import NATIVE_FUNCTIONS, NEEDED, OPERATIONS
from support.upstream_trees import empty_tree


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "host.so"
    path.touch()
    return path


def built_from(library: Path) -> TreeBuild:
    files = (
        BuiltFile("Eye", ("eye.out",), str(library)),
        BuiltFile("Sort", ("sort", "topk"), str(library)),
        BuiltFile("Graph", ("mm",), problem="Graph.mm:3: error: no"),
    )
    return TreeBuild("2.6.0", "2.6.0", files, {"tril.out": ""}, {"sort:": ("Sort.mm",)})


def test_a_build_is_read_as_it_was_noted(tmp_path: Path, library: Path) -> None:
    built = built_from(library)
    write_manifest(tmp_path / "out", built)
    assert read_manifest(tmp_path / "out") == built
    assert built.overloads == ("aten::eye.out", "aten::sort", "aten::topk")
    assert [file.name for file in built.failed] == ["Graph"]


def test_files_of_one_library_load_it_once(library: Path) -> None:
    loaded: list[Path] = []
    built_from(library).load(loaded.append)
    assert loaded == [library]


def test_a_build_whose_library_is_gone_is_none(tmp_path: Path, library: Path) -> None:
    assert read_manifest(tmp_path) is None
    write_manifest(tmp_path, built_from(library))
    library.unlink()
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", '{"files": [{}]}'])
def test_a_damaged_manifest_has_a_next_step(tmp_path: Path, text: str) -> None:
    (tmp_path / "host_code.json").write_text(text)
    with pytest.raises(UpstreamError, match="is damaged: remove "):
        read_manifest(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = empty_tree(tmp_path / "tree")
    (root / OPERATIONS / "Eye.mm").write_text("one")
    (root / NATIVE_FUNCTIONS).write_text("- func: eye")
    return root


def test_a_tree_is_rebuilt_only_if_its_inputs_changed(
    tree: Path, tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[str] = []

    def build(root: Path, source: str, kernels: str, report: object) -> TreeBuild:
        builds.append(source)
        return built_from(library)

    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(whole_tree, "build_tree", build)

    def kept(source: str = "a", torch: str = "2.13.0") -> Path:
        return kept_build(tree, source, "", torch, print)[0]

    first = kept()
    assert kept() == first
    assert builds == ["a"]
    (tree / OPERATIONS / "Eye.mm").write_text("two")
    second = kept()
    (tree / OPERATIONS / "notes.txt").write_text("read by no build, but below a folder that is")
    assert len({first, second, kept(), kept(torch="2.14.0"), kept("b")}) == 5
    assert builds == ["a", "a", "a", "a", "b"]


@pytest.mark.parametrize("missing", NEEDED)
def test_a_folder_without_pytorch_or_half_of_it_is_refused(
    tree: Path, missing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_builds, "installed", lambda: pytest.fail("the compiler was asked for"))
    (tree / missing).rename(tree / "elsewhere")
    with pytest.raises(UpstreamError, match=f"has no {missing}: give a whole checkout of PyTorch"):
        kept_build(tree, "a", "", "2.13.0", print)
