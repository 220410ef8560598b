"""The list of public projects, fetched from an index or taken from a checkout, and compiled."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpsmith.cli import app
from mpsmith.errors import MpsmithError
from mpsmith.simulator.corpus import projects as projects_module
from mpsmith.simulator.corpus.compiling import CompiledFile, compile_project
from mpsmith.simulator.corpus.fetching import tree_of
from mpsmith.simulator.corpus.page import page, table
from mpsmith.simulator.corpus.projects import Project, chosen, parse_trees, projects

MADE_UP = Project(
    name="made-up",
    archive="",
    sha256="",
    git="https://example.org/made-up",
    commit="0123456789abcdef",
    root="made",
    files=("*.metal",),
    without=("part.metal",),
    include=("include",),
    define=("COUNT=4",),
    before=("common.metal",),
)
FILES = {
    "made/common.metal": "#include <metal_stdlib>\ninline float twice(float x) { return 2 * x; }\n",
    "made/include/more.h": "constant float more = COUNT;\n",
    "made/good.metal": '#include "more.h"\nkernel void good(device float* o) { o[0] = twice(more); }\n',
    "made/part.metal": "no program of its own\n",
    "made/tensor.metal": "#include <metal_tensor>\n",
    "made/wrong.metal": "kernel void wrong(device float* o) {\n  o[0] = unknown; }\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """MADE_UP as a source distribution, with a member that would leave its folder and one that nobody needs."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "made-up-1.tar.gz"
    with tarfile.open(path, "w:gz") as members:
        for name, text in {**FILES, "../outside.metal": "x", "made/setup.py": "raise SystemExit"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            members.addfile(member, io.BytesIO(text.encode()))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(MADE_UP, archive=path.as_uri(), sha256=checksum, git="", commit="")


class TestList:
    def test_every_project_says_where_it_comes_from(self) -> None:
        listed = projects()
        assert len({p.name for p in listed}) == len(listed) >= 8
        for project in listed:
            assert project.files
            assert bool(project.archive) != bool(project.git)
            assert len(project.sha256) == 64 if project.archive else len(project.commit) == 40

    def test_names_and_trees_that_make_no_sense_are_refused(self, tmp_path: Path) -> None:
        assert [p.name for p in chosen(["candle", "mlx"])] == ["mlx", "candle"]
        with pytest.raises(MpsmithError, match=r"no project mxl; the list has mlx, "):
            chosen(["mxl"])
        assert parse_trees([f"mlx={tmp_path}"]) == {"mlx": tmp_path}
        with pytest.raises(MpsmithError, match="give PROJECT=FOLDER"):
            parse_trees(["mlx"])


class TestFetching:
    def test_an_archive_is_kept_without_what_it_does_not_need(self, archive: Project) -> None:
        assert tree_of(archive, fetch=False) is None
        folder = tree_of(archive, fetch=True)
        assert folder is not None
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert found == set(FILES)
        assert tree_of(archive, fetch=False) == folder
        assert not (folder.parent / "outside.metal").exists()

    def test_another_archive_than_the_known_one_is_refused(self, archive: Project) -> None:
        with pytest.raises(MpsmithError, match="its checksum differs"):
            tree_of(replace(archive, sha256="0" * 64), fetch=True)

    def test_a_repository_is_left_to_the_reader(self) -> None:
        assert tree_of(replace(MADE_UP, name="not checked out"), fetch=True) is None


def test_files_are_accepted_refused_or_not_supported(tree: Path) -> None:
    pytest.importorskip("ziglang")
    good, tensor, wrong = compile_project(MADE_UP, tree)
    assert (good.file, good.standing, good.reason) == ("good.metal", "accepted", "")
    assert (tensor.file, tensor.standing) == ("tensor.metal", "not supported")
    assert tensor.reason.endswith("the simulator does not support tensors")
    assert (wrong.file, wrong.standing) == ("wrong.metal", "refused")
    assert wrong.reason == "wrong.metal:2: use of undeclared identifier 'unknown'"
    known = replace(MADE_UP, mistakes={"wrong.metal": "nobody declares it", "good.metal": "nothing"})
    good, _, wrong = compile_project(known, tree)
    assert (good.standing, wrong.standing) == ("accepted", "own mistake")
    assert wrong.reason.endswith("; nobody declares it")


def test_tables_count_files_and_name_those_that_are_not_accepted() -> None:
    results = [
        CompiledFile("a", "1", "x.metal", "accepted", ""),
        CompiledFile("a", "1", "y.metal", "refused", "y.metal:1: no such thing"),
        CompiledFile("b", "2", "z.metal", "not supported", "z.metal:1: tensors"),
    ]
    text = table(results)
    assert [line.split() for line in text.split("\n")[2:4]] == [
        ["a", "1", "2", "1", "0", "0", "1"],
        ["b", "2", "1", "0", "1", "0", "0"],
    ]
    assert "refused: a y.metal\n  y.metal:1: no such thing" in text
    assert "x.metal" not in text
    written = page(results, [MADE_UP])
    assert "| y.metal | refused" in written
    assert "for want of a checkout: made-up (https://example.org/made-up, 0123456789ab)" in written


def test_the_command_prints_results_and_fails_where_a_file_is_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setattr(projects_module, "projects", lambda: [MADE_UP])
    arguments = ["shader", "corpus", "--tree", f"made-up={tree}", "--json", "--output", str(tmp_path / "page.md")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    printed = json.loads(done.stdout)
    assert [r["standing"] for r in printed] == ["accepted", "not supported", "refused"]
    assert "wrong.metal" in (tmp_path / "page.md").read_text()
    (tree / "made/wrong.metal").unlink()
    assert CliRunner().invoke(app, arguments).exit_code == 0


@pytest.mark.network
def test_a_package_of_the_index_is_fetched_and_accepted() -> None:
    (project,) = chosen(["mps-bitsandbytes"])
    folder = tree_of(project, fetch=True)
    assert folder is not None
    refused = {r.file: r.reason for r in compile_project(project, folder) if r.standing != "accepted"}
    # Its own fault: Metal's frexp takes a reference, and the file passes a pointer.
    assert list(refused) == ["fp8_matmul.metal"]
    assert "69: no matching function for call to 'frexp'; Metal's frexp" in refused["fp8_matmul.metal"]
