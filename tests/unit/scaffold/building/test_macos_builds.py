"""On a Mac the real toolchain builds. Here a stand-in for torch's builder says what it was asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mpsmith.scaffold.building import macos
from mpsmith.scaffold.building.subject import subject_at
from mpsmith.scaffold.errors import ScaffoldError

# torch.utils.cpp_extension and setuptools as far as a build goes: a module is a file with what it was asked for.
TORCH = """
class BuildExtension: pass
def CppExtension(name, sources, **options): return {"name": name, "sources": sources, **options}
"""
SETUPTOOLS = """
import json, pathlib, sys
def setup(ext_modules, cmdclass):
    words = sys.argv[1:]
    print("compiling", file=sys.stderr)
    for extension in ext_modules:
        if "broken" in extension["name"]:
            sys.exit("clang: error")
        if "empty" in extension["name"]:
            continue
        out = pathlib.Path(words[words.index("--build-lib") + 1] if "--build-lib" in words else ".")
        target = out / (extension["name"].replace(".", "/") + ".cpython-darwin.so")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps([words, extension]))
"""
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(ext_modules=[CppExtension("package._C", ["src/kernel.mm"])], cmdclass={"build_ext": BuildExtension})
"""


@pytest.fixture(autouse=True)
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins are found before the installed packages, by processes that start from now on."""
    packages = tmp_path / "packages"
    (packages / "torch" / "utils").mkdir(parents=True)
    for package in ("torch", "torch/utils"):
        (packages / package / "__init__.py").write_text("")
    (packages / "torch" / "utils" / "cpp_extension.py").write_text(TORCH)
    (packages / "setuptools.py").write_text(SETUPTOOLS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])))


def source(folder: Path, name: str = "kernel") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.mm"
    path.write_text("")
    return path


def test_a_file_is_linked_with_apples_frameworks(tmp_path: Path) -> None:
    (built,) = macos.build(subject_at(source(tmp_path / "work")))
    words, extension = json.loads(built.read_text())
    assert built.parent == tmp_path / "work"
    assert words[0] == "build_ext"
    assert extension["sources"] == [str(tmp_path / "work" / "kernel.mm")]
    assert extension["extra_compile_args"] == ["-fobjc-arc"]
    assert extension["extra_link_args"] == ["-framework", "Metal", "-framework", "Foundation"]
    assert sorted((tmp_path / "work").iterdir()) == sorted([tmp_path / "work" / "kernel.mm", built])


def test_without_reference_counting_nothing_asks_for_it(tmp_path: Path) -> None:
    (built,) = macos.build(subject_at(source(tmp_path / "work"), ["-fno-objc-arc"]))
    assert json.loads(built.read_text())[1]["extra_compile_args"] == []


def test_a_package_is_built_in_place_by_its_setup_script(tmp_path: Path) -> None:
    package = tmp_path / "work"
    package.mkdir()
    (package / "setup.py").write_text(SETUP)
    (built,) = macos.build(subject_at(package))
    words, extension = json.loads(built.read_text())
    assert built == package / "package" / "_C.cpython-darwin.so"
    assert words == ["build_ext", "--inplace"]
    assert extension["sources"] == ["src/kernel.mm"]
    assert macos.build(subject_at(package)) == [built]


def test_a_toolchain_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"broken\.mm was not built: see the toolchain's messages above"):
        macos.build(subject_at(source(tmp_path / "work", "broken")))
    with pytest.raises(ScaffoldError, match="built no module"):
        macos.build(subject_at(source(tmp_path / "work", "empty")))


# As on a Mac, except for the toolchain; prints which parts of the simulator were imported.
COMMAND = """
import platform, sys
platform.system = lambda: "Darwin"
from mpsmith.cli import main
try:
    main()
finally:
    print(sorted(name for name in sys.modules if name.startswith("mpsmith.simulator.")), "torch" in sys.modules)
"""


def test_the_command_touches_no_simulator_on_a_mac(tmp_path: Path) -> None:
    def modules(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(COMMAND), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0].startswith(("built", "mpsmith"))
        return done.stdout.splitlines()[-1]

    built = modules("build", str(source(tmp_path / "work")))
    assert built == modules("--version")  # what the command line itself imports
    assert built.endswith("False")
