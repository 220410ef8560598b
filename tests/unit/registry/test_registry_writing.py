import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mpsmith.registry import writing
from mpsmith.registry.files import edit, edit_all, load
from mpsmith.registry.problems import RegistryError

ENTRY = "aten::mode:\n  owner: a\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(ENTRY)
    (tmp_path / "s.yaml").write_text("aten::sort:\n  owner: a\n")
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


CHANGES = {"aten::mode": {"owner": "b"}, "aten::sort": {"owner": "b"}, "aten::topk": {"owner": "b"}}


@pytest.mark.parametrize("failing", ["open", "fsync", "replace"])
def test_a_disk_that_refuses_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    before = everything(folder)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path_open = Path.open
    match failing:
        case "open":
            monkeypatch.setattr(Path, "open", lambda path, mode="r": refuse() if "w" in mode else path_open(path, mode))
        case "fsync":
            monkeypatch.setattr(os, "fsync", refuse)
        case "replace":
            monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RegistryError) as raised:
        edit_all(folder, CHANGES, add=True)
    monkeypatch.undo()
    assert os.strerror(errno.ENOSPC) in str(raised.value)
    assert "MPSMITH_REGISTRY" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert everything(folder) == before


def test_a_disk_that_fills_up_midway_loses_nothing(folder: Path) -> None:
    """With a real limit on file sizes: the second file does not fit."""
    long = {"aten::mode": {"notes": "short"}, "aten::sort": {"notes": "long " * 2000}}
    script = f"""
        import resource, signal
        from pathlib import Path
        from mpsmith.registry.files import edit_all
        from mpsmith.registry.problems import RegistryError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            edit_all(Path({str(folder)!r}), {long!r})
        except RegistryError as error:
            print(error)
    """
    before = everything(folder)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cannot write the registry in"), done.stderr
    assert "File too large" in done.stdout
    assert everything(folder) == before


def test_refuses_a_path_that_is_not_a_folder(folder: Path) -> None:
    from mpsmith.registry.sync import sync

    with pytest.raises(RegistryError, match=r"cannot write the registry in .*m.yaml/x: .*; nothing was changed"):
        sync(folder / "m.yaml" / "x", [])


def test_a_change_meanwhile_is_not_overwritten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written_through = writing._write_through

    def with_an_editor_beside(temporary: Path, text: str, *, like: Path) -> None:
        written_through(temporary, text, like=like)
        (folder / "m.yaml").write_text("aten::mode:\n  owner: saved in an editor\n")

    monkeypatch.setattr(writing, "_write_through", with_an_editor_beside)
    with pytest.raises(RegistryError, match=r"m.yaml was changed while mpsmith worked on it: try again"):
        edit_all(folder, CHANGES, add=True)
    assert load(folder)["aten::mode"].owner == "saved in an editor"
    assert load(folder)["aten::sort"].owner == "a"
    assert sorted(everything(folder)) == ["m.yaml", "s.yaml"]


def test_permissions_stay(folder: Path) -> None:
    (folder / "m.yaml").chmod(0o640)
    edit(folder, "mode", {"owner": "b"})
    assert (folder / "m.yaml").stat().st_mode & 0o777 == 0o640


def test_removes_files_of_killed_writers(folder: Path) -> None:
    (folder / ".m.yaml.4711.tmp").write_text("half an ent")
    edit(folder, "mode", {"owner": "b"})
    assert sorted(everything(folder)) == ["m.yaml", "s.yaml"]


def test_writers_wait_for_each_other(folder: Path) -> None:
    """Each of several processes adds its own entries to the same file; none of them is lost."""
    script = """
        import sys
        from pathlib import Path
        from mpsmith.registry.files import edit
        for number in range(5):
            edit(Path(sys.argv[1]), f"aten::m{sys.argv[2]}_{number}", {"owner": sys.argv[2]}, add=True)
    """
    code = textwrap.dedent(script)
    running = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(writer)]) for writer in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert len(load(folder)) == 2 + 4 * 5
    assert sorted(everything(folder)) == ["m.yaml", "s.yaml"]
