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
# What stands in the repository beside the package.
NOT_THE_PACKAGE = {"benchmarks", "build", "dist", "docs", "tests"}
# Files in the package's folders that are for readers of the repository.
NOT_INSTALLED = ("*.md", "reports/published/*")


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
    for room in {folder.parts[0] for folder in package_folders() if folder.parts}:
        for path in (ROOT / room).rglob("*"):
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
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names in a wheel that is built from a copy, so that nothing is left in the working tree."""
    source, out = tmp_path_factory.mktemp("source") / "mpsmith", tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.sqlite*")
    shutil.copytree(ROOT, source, ignore=left_out)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--wheel-dir", str(out), str(source)], check=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_installs_one_top_level_package(wheel_names: list[str]) -> None:
    """Top-level packages named `kernels` or `audit` would break other distributions of these names."""
    tops = {name.split("/")[0] for name in wheel_names}
    assert "mpsmith" in tops
    assert [top for top in tops if top != "mpsmith" and not fnmatch(top, "mpsmith-*.dist-info")] == []
    assert [name for name in wheel_names if name.startswith(("mpsmith/tests", "mpsmith/benchmarks"))] == []


def test_the_wheel_holds_every_module_and_data_file(wheel_names: list[str]) -> None:
    modules = {path.relative_to(ROOT) for folder in package_folders() for path in (ROOT / folder).glob("*.py")}
    expected = {f"mpsmith/{path.as_posix()}" for path in modules | set(data_files()) | {Path("py.typed")}}
    assert sorted(expected - set(wheel_names)) == []


@pytest.mark.parametrize("module", ["mpsmith", "mpsmith.cli", "mpsmith.registry.files"])
def test_the_front_doors_import_no_torch(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
