"""What gets installed, and what its front doors import."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
# Folders of the repository that are not part of the package.
NOT_THE_PACKAGE = {"benchmarks", "build", "dist", "docs", "tests", "work"}
# Modules at the root that build the package and are not part of it.
BUILDS = {Path("setup.py")}
# Files in the package's folders that are for readers of the repository.
NOT_INSTALLED = ("*.md", "reports/published/*", "registry/evidence/*")


@pytest.fixture(scope="module")
def setuptools_settings() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def package_folders() -> Iterator[Path]:
    """Every folder with an `__init__.py`, the root included, as paths from the root."""
    for folder, names, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        outside = NOT_THE_PACKAGE if here == Path() else set()
        names[:] = [name for name in names if name not in outside and not name.startswith((".", "__"))]
        if "__init__.py" in files:
            yield here


def dotted(folder: Path) -> str:
    return ".".join(("mpsmith", *folder.parts))


def data_files() -> Iterator[Path]:
    """Every file of the package's folders, and of folders of data below them, that is neither code nor for readers."""
    for top in {folder.parts[0] for folder in package_folders() if folder.parts}:
        for path in (ROOT / top).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            kept_out = any(fnmatch(name, pattern) for pattern in NOT_INSTALLED) or "__pycache__" in name
            if path.is_file() and path.suffix not in (".py", ".pyc") and not path.name.startswith(".") and not kept_out:
                yield path.relative_to(ROOT)


def shipped_by(patterns: dict[str, list[str]]) -> dict[tuple[str, str], set[Path]]:
    """The files that each pattern of each package matches."""
    return {
        (package, pattern): {
            path.relative_to(ROOT)
            for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
            if path.is_file() and "__pycache__" not in path.parts
        }
        for package, globs in patterns.items()
        for pattern in globs
    }


def test_every_package_is_listed(setuptools_settings: Any) -> None:
    assert sorted(setuptools_settings["packages"]) == sorted(dotted(folder) for folder in package_folders())


def test_every_data_pattern_matches_files(setuptools_settings: Any) -> None:
    shipped = shipped_by(setuptools_settings["package-data"])
    without = {key for key, files in shipped.items() if not files}
    if not (ROOT / "registry" / "operators").exists():
        without -= {("mpsmith.registry", "operators/*.yaml")}  # a tree whose registry no audit has filled yet
    assert without == set()


def test_every_data_file_is_shipped(setuptools_settings: Any) -> None:
    shipped = set().union(*shipped_by(setuptools_settings["package-data"]).values())
    assert sorted(set(data_files()) - shipped) == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built from a copy, so that nothing is left in the working tree.

    An earlier build has left a kernel there that is gone since.
    """
    source, out = tmp_path_factory.mktemp("source") / "mpsmith", tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.sqlite*")
    shutil.copytree(ROOT, source, ignore=left_out)
    stale = source / "build" / "lib" / "mpsmith" / "kernels"
    stale.mkdir(parents=True)
    for name in ("gone.py", "gone.metal"):
        (stale / name).touch()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--wheel-dir", str(out), str(source)], check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_installs_one_top_level_package(wheel_names: list[str]) -> None:
    """Top-level packages named `kernels` or `audit` would break other distributions of these names."""
    tops = {name.split("/")[0] for name in wheel_names}
    assert "mpsmith" in tops
    assert [top for top in tops if top != "mpsmith" and not fnmatch(top, "mpsmith-*.dist-info")] == []
    assert [name for name in wheel_names if name.startswith(("mpsmith/tests", "mpsmith/benchmarks"))] == []


def test_the_wheel_holds_the_modules_and_data_files(wheel_names: list[str]) -> None:
    modules = {path.relative_to(ROOT) for folder in package_folders() for path in (ROOT / folder).glob("*.py")}
    expected = {f"mpsmith/{path.as_posix()}" for path in modules - BUILDS | set(data_files()) | {Path("py.typed")}}
    shipped = {name for name in wheel_names if name.startswith("mpsmith/")}
    assert sorted(expected - shipped) == []
    assert sorted(shipped - expected) == []


def test_the_wheel_holds_nothing_of_an_earlier_build(wheel_names: list[str]) -> None:
    assert [name for name in wheel_names if "gone" in name] == []


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with the wheel's files."""
    folder = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_installed(folder: Path, *arguments: str, module: str = "mpsmith") -> subprocess.CompletedProcess[str]:
    """A command of the installed package, in a folder next to it."""
    environment = {name: value for name, value in os.environ.items() if name != "MPSMITH_REGISTRY"}
    environment |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    here = folder.with_name("here")
    here.mkdir(exist_ok=True)
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)


def files_below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_an_installed_package_writes_where_its_user_is(installed: Path) -> None:
    before = files_below(installed)
    written = run_installed(installed, "registry", "set", "aten::mode", "owner=ada")
    assert written.stdout.startswith("mpsmith-registry/m.yaml:"), written.stderr
    assert "ada" in run_installed(installed, "registry", "show", "mode").stdout
    assert files_below(installed) == before
    assert [path.name for path in installed.with_name("here").iterdir()] == ["mpsmith-registry"]


def test_an_installed_package_does_not_change_its_data(installed: Path) -> None:
    rebuilt = run_installed(installed, module="mpsmith.audit.releases.wheel.rebuild")
    assert (rebuilt.returncode, rebuilt.stdout) == (1, "")
    assert "in a clone" in rebuilt.stderr


@pytest.mark.parametrize("module", ["mpsmith", "mpsmith.cli", "mpsmith.registry.files"])
def test_the_front_doors_import_no_torch(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
