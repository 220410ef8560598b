"""The public Metal projects: downloaded or checked out, and compiled."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from metal_corpus import __main__ as command
from metal_corpus import projects as projects_module
from metal_corpus.compiling import compile_project
from metal_corpus.projects import Project, parse_trees, projects, select_projects, tree_of
from mpsmith.errors import MpsmithError
from support.needs import needs_metal_on_host

TO_COMPILE = Project(
    name="made-up",
    files=("*.metal",),
    git="https://example.org/made-up",
    commit="0123456789abcdef",
    root="made",
    without=("part.metal",),
    include=("include",),
    define=("COUNT=4",),
    before=("common.metal",),
)
FILES = {
    "made/common.metal": "#include <metal_stdlib>\ninline float twice(float x) { return 2 * x; }\n",
    "made/include/more.h": "constant float more = COUNT;\n",
    "made/good.metal": '#include "more.h"\nkernel void good(device float* o) { o[0] = twice(more); }\n',
    "made/part.metal": "part of another file\n",
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
    """TO_COMPILE as an archive, with one member outside of its folder and one that is not Metal."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "made-up-1.tar.gz"
    with tarfile.open(path, "w:gz") as members:
        for name, text in {**FILES, "../outside.metal": "x", "made/setup.py": "raise SystemExit"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            members.addfile(member, io.BytesIO(text.encode()))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(TO_COMPILE, archive=path.as_uri(), sha256=checksum, git="", commit="")


class TestList:
    def test_every_project_has_one_origin(self) -> None:
        for project in projects():
            assert project.files
            assert bool(project.archive) != bool(project.git)
            assert len(project.sha256) == 64 if project.archive else len(project.commit) == 40

    def test_rejects_unknown_names_and_trees(self, tmp_path: Path) -> None:
        assert [p.name for p in select_projects(["candle", "mlx"])] == ["mlx", "candle"]
        with pytest.raises(MpsmithError, match=r"no project mxl; the list has mlx, "):
            select_projects(["mxl"])
        assert parse_trees([f"mlx={tmp_path}"]) == {"mlx": tmp_path}
        with pytest.raises(MpsmithError, match="give PROJECT=FOLDER"):
            parse_trees(["mlx"])


class TestDownload:
    def test_keeps_only_metal_files_inside_the_folder(self, archive: Project) -> None:
        folder = tree_of(archive)
        assert folder is not None
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(FILES)
        assert tree_of(replace(archive, sha256="")) == folder
        assert not (folder.parent / "outside.metal").exists()

    def test_rejects_another_checksum(self, archive: Project) -> None:
        with pytest.raises(MpsmithError, match="the checksum differs"):
            tree_of(replace(archive, sha256="0" * 64))

    def test_a_repository_is_not_downloaded(self) -> None:
        assert tree_of(replace(TO_COMPILE, name="not checked out")) is None


def test_compiled_files_are_accepted_refused_or_not_supported(tree: Path) -> None:
    needs_metal_on_host()
    good, tensor, wrong = compile_project(TO_COMPILE, tree)
    assert (good.file, good.result, good.reason) == ("good.metal", "accepted", "")
    assert (tensor.file, tensor.result) == ("tensor.metal", "not supported")
    assert tensor.reason.endswith("the simulator does not support tensors")
    assert (wrong.file, wrong.result) == ("wrong.metal", "refused")
    assert wrong.reason == "wrong.metal:2: use of undeclared identifier 'unknown'"
    with_mistake = replace(TO_COMPILE, mistakes={"wrong.metal": "a typo", "good.metal": "nothing"})
    good, _, wrong = compile_project(with_mistake, tree)
    assert (good.result, wrong.result) == ("accepted", "own mistake")
    assert wrong.reason.endswith("; a typo")


def test_the_command_writes_a_page_and_fails_with_a_refused_file(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_metal_on_host()
    monkeypatch.setattr(projects_module, "projects", lambda: [TO_COMPILE])
    page = tmp_path / "page.md"
    assert command.main(["--tree", f"made-up={tree}", "--output", str(page)]) == 1
    assert "wrong.metal" in page.read_text().partition("Failures")[2]
    monkeypatch.setattr(projects_module, "projects", lambda: [replace(TO_COMPILE, files=("good.metal",))])
    assert command.main(["--tree", f"made-up={tree}", "--output", str(page)]) == 0
    assert "Failures" not in page.read_text()


@pytest.mark.network
def test_a_package_is_downloaded_and_accepted() -> None:
    (project,) = select_projects(["mps-bitsandbytes"])
    folder = tree_of(project)
    assert folder is not None
    refused = {r.file: r.reason for r in compile_project(project, folder) if r.result != "accepted"}
    # Metal's frexp takes a reference, and the file passes a pointer.
    assert list(refused) == ["fp8_matmul.metal"]
    assert "69: no matching function for call to 'frexp'; Metal's frexp" in refused["fp8_matmul.metal"]
