"""Building the C++ on first use. The builds here are of one small source, to cost little."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.simulator.device import build as device_build
from mpsmith.simulator.errors import SimulatorError

from ..conftest import FreshPython

SMALL_SOURCE = """
#include <cstdio>
static int loaded = std::puts("LOADED");
"""
BUILD = """
import sys
from pathlib import Path
from mpsmith.simulator.device import build as device_build
from mpsmith.simulator.errors import SimulatorError
device_build.SOURCE_FOLDER = Path({folder!r})
try:
    device_build.load_library()
except SimulatorError as error:
    print(error)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "csrc"
    folder.mkdir()
    (folder / "small.cpp").write_text(SMALL_SOURCE)
    return folder


def test_the_sources_are_there_and_are_package_data() -> None:
    names = {path.name for path in device_build.source_files()}
    assert {"control.cpp", "native_kernel.cpp", "device.h"} <= names
    assert {path.suffix for path in device_build.SOURCE_FOLDER.iterdir()} == {".cpp", ".h"}


def test_first_use_says_that_it_builds_and_how_long_it_took_and_the_next_does_not(
    fresh_python: FreshPython, sources: Path, tmp_path: Path
) -> None:
    script = BUILD.format(folder=str(sources))
    first = fresh_python(script, MPSMITH_CACHE=str(tmp_path / "cache"))
    second = fresh_python(script, MPSMITH_CACHE=str(tmp_path / "cache"))
    begun, built = first.stderr.splitlines()
    assert begun == "mpsmith: building the simulated mps device, once for this torch: 10 to 30 s"
    assert re.fullmatch(r"mpsmith: built in \d+ s", built)
    assert second.stderr == ""
    assert first.stdout.split() == second.stdout.split() == ["LOADED"]


def test_changed_sources_are_built_anew(fresh_python: FreshPython, sources: Path, tmp_path: Path) -> None:
    script = BUILD.format(folder=str(sources))
    fresh_python(script, MPSMITH_CACHE=str(tmp_path / "cache"))
    (sources / "small.cpp").write_text(SMALL_SOURCE.replace("LOADED", "CHANGED"))
    assert "CHANGED" in fresh_python(script, MPSMITH_CACHE=str(tmp_path / "cache")).stdout


def test_two_processes_that_build_at_once_both_get_the_library(sources: Path, tmp_path: Path) -> None:
    script = "import os\n" + BUILD.format(folder=str(sources))
    script = f"import os; os.environ['MPSMITH_CACHE'] = {str(tmp_path / 'cache')!r}\n{script}"
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [out.split() for out, _ in outputs] == [["LOADED"], ["LOADED"]]
    assert sorted(err != "" for _, err in outputs) == [False, True], "one of them builds, the other waits"


def test_ninja_is_found_although_it_is_not_on_the_path(
    fresh_python: FreshPython, sources: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    import shutil

    for tool in ("c++", "as", "ld", "sh", "uname", "which"):
        path = shutil.which(tool)
        assert path is not None
        (tools / tool).symlink_to(path)
    done = fresh_python(BUILD.format(folder=str(sources)), MPSMITH_CACHE=str(tmp_path / "cache"), PATH=str(tools))
    assert done.stdout.split() == ["LOADED"]


def test_leftovers_of_a_killed_build_are_removed(
    monkeypatch: pytest.MonkeyPatch, fresh_python: FreshPython, sources: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(device_build, "SOURCE_FOLDER", sources)
    folder = device_build.libraries_folder() / device_build._build_key()
    (folder / "build-abandoned").mkdir(parents=True)
    fresh_python(BUILD.format(folder=str(sources)), MPSMITH_CACHE=str(tmp_path / "cache"))
    assert {path.name for path in folder.iterdir()} == {f"{device_build.LIBRARY_NAME}.so", "lock"}


def test_no_compiler_is_a_clear_error(fresh_python: FreshPython, sources: Path, tmp_path: Path) -> None:
    done = fresh_python(BUILD.format(folder=str(sources)), MPSMITH_CACHE=str(tmp_path / "cache"), CXX="no-such-c++")
    assert done.stdout.startswith("the simulated mps device needs a C++ compiler, and there is no `no-such-c++` here;")
    assert len(done.stdout.splitlines()) == 1


def test_a_failed_compilation_leaves_its_log_and_nothing_else(
    fresh_python: FreshPython, sources: Path, tmp_path: Path
) -> None:
    (sources / "small.cpp").write_text("not C++")
    done = fresh_python(BUILD.format(folder=str(sources)), MPSMITH_CACHE=str(tmp_path / "cache"))
    message, log = done.stdout.strip().split(" are in ")
    assert message == "the simulated mps device does not compile here; the compiler's messages"
    assert "error" in Path(log).read_text()
    assert {path.name for path in Path(log).parent.iterdir()} == {"build.log", "lock"}


def test_a_cache_folder_that_cannot_be_written_is_a_clear_error(
    fresh_python: FreshPython, sources: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file")
    done = fresh_python(BUILD.format(folder=str(sources)), MPSMITH_CACHE=str(in_the_way))
    assert done.stdout.startswith("cannot keep the simulated device in ")
    assert done.stdout.strip().endswith("set MPSMITH_CACHE to a folder that can be written")


def test_a_damaged_library_is_named(monkeypatch: pytest.MonkeyPatch, sources: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(device_build, "SOURCE_FOLDER", sources)
    library = device_build.libraries_folder() / device_build._build_key() / f"{device_build.LIBRARY_NAME}.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"not a library")
    with pytest.raises(SimulatorError, match=r"cannot load .*\.so.*; delete it to build it anew"):
        device_build.load_library()
