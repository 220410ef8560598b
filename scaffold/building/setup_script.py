"""Reads the extensions of a folder's setup.py, by running it as on a Mac up to its call of `setup`, in a process.

This module is also the program of that process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...audit.model import time_limit
from ...errors import one_line
from ...simulator.device import inheritance
from ...simulator.objc.building import TORCHS_BUILDER
from ...simulator.objc.compile_options import CompileOptions, parse_options
from ..errors import ScaffoldError
from .apple_tools import tools_folder
from .subject import SETUP

_COMPILES_METAL = re.compile(r"xcrun|metallib")

LIMIT = 120.0
"""Seconds of processor time that a setup.py may take until it calls `setup`, or five times as many by the clock."""


@dataclass(frozen=True)
class ExtensionRequest:
    """One extension.

    Attributes:
        name: its full name as a module.
        sources: the files that it is built from.
        options: of the compiler.
        place: the folder to put its library in.
    """

    name: str
    sources: tuple[Path, ...]
    options: CompileOptions
    place: Path


@dataclass(frozen=True)
class SetupScript:
    """The extensions of a setup.py, the folder that its packages are in, and why it cannot compile Metal, or "".

    `kernel`: the value of LOCAL_KERNEL of a build.toml.
    """

    requests: tuple[ExtensionRequest, ...]
    packages: Path
    problem: str = ""
    kernel: str = ""


def requests_of(folder: Path, limit: float = LIMIT) -> SetupScript:
    """The extensions of a folder's setup.py. It is executed, as for any build, up to its call of `setup`.

    Raises:
        ScaffoldError: it fails, takes longer than `limit` seconds, or requests no extension.
    """
    script = folder / SETUP
    with tempfile.TemporaryDirectory(prefix="mpsmith-setup-") as temporary:
        report = Path(temporary) / "report.json"
        command = [sys.executable, "-m", __name__, str(report), str(limit)]
        path = os.pathsep.join([str(tools_folder()), os.environ.get("PATH", os.defpath)])
        environment = os.environ | {inheritance.VARIABLE: "1", "PATH": path}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if time_limit.exceeded(done.returncode):
            raise ScaffoldError(f"{script} runs longer than {limit:g} s without calling setup()")
        if not report.is_file():
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise ScaffoldError(f"{script} fails: {last}")
        data = json.loads(report.read_text())
    if "problem" in data:
        raise ScaffoldError(f"{script} fails: {data['problem']}")
    packages = _packages(folder, data)
    requests = tuple(_request(extension, folder, data["package_dir"], packages) for extension in data["extensions"])
    if not requests:
        raise ScaffoldError(f"{script} asks for no extension module")
    return SetupScript(requests, packages, data["steps"])


def _packages(folder: Path, data: dict[str, Any]) -> Path:
    named = data["package_dir"].get("")
    if named is None:
        beside_src = any((folder / extension["name"].split(".")[0]).is_dir() for extension in data["extensions"])
        holds_packages = (folder / "src").is_dir() and not (folder / "src" / "__init__.py").is_file()
        named = "src" if holds_packages and not beside_src else ""
    return folder / str(named)


def _request(extension: dict[str, Any], folder: Path, places: dict[str, str], packages: Path) -> ExtensionRequest:
    flags = extension["flags"]
    if isinstance(flags, dict):
        flags = flags.get("cxx", [])
    macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension["macros"]]
    options = parse_options([*macros, *flags])
    # torch's own headers are found without being asked for.
    own = [folder / place for place in extension["include"] if "torch/include" not in Path(place).as_posix()]
    sources = tuple(Path(os.path.normpath(folder / source)) for source in extension["sources"])
    package = extension["name"].rpartition(".")[0].split(".") if "." in extension["name"] else []
    place = packages.joinpath(*package)
    for count in range(1, len(package) + 1):
        package_dir = places.get(".".join(package[:count]))
        place = folder.joinpath(package_dir, *package[count:]) if package_dir is not None else place
    options = replace(options.from_folder(folder).including(own), arc=bool(options.arc))  # clang's default is without
    return ExtensionRequest(extension["name"], sources, options, place)


# ------------------------------------------------------------------------------------------ the process of the script
def _run_own_steps(distribution: Any, compiles: bool) -> None:
    """Run the script's own steps of build_ext, such as compiling Metal, without building its extensions.

    They run if the script has its own `build_extensions`, which may add sources and folders, or if it compiles Metal.
    """
    bases = [
        importlib.import_module("setuptools.command.build_ext").build_ext,
        importlib.import_module("torch.utils.cpp_extension").BuildExtension,
    ]
    own = distribution.get_command_class("build_ext")
    if own in bases or not (compiles or all(own.build_extensions is not base.build_extensions for base in bases)):
        return
    for base in bases:
        base.build_extensions = _make_folders
        for method in ("build_extension", "copy_extensions_to_source"):
            setattr(base, method, lambda self, *arguments: None)
    command = distribution.get_command_obj("build_ext")
    command.inplace = True  # modules and other compiled files are written into the packages
    command.ensure_finalized()
    command.run()
    # setuptools copies extensions alone out of its folder; an installed package has the other files, too.
    packages = distribution.get_command_obj("build_py")
    packages.ensure_finalized()
    for path in Path(command.build_lib).rglob("*"):
        place = path.relative_to(command.build_lib).parent
        target = Path(packages.get_package_dir(".".join(place.parts)), path.name)
        if path.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def _make_folders(command: Any) -> None:
    """Make the folders of the extensions, into which the script may write."""
    for extension in command.extensions:
        Path(command.get_ext_fullpath(extension.name)).parent.mkdir(parents=True, exist_ok=True)


def _run_here(report: Path) -> None:
    importlib.import_module("setuptools")  # brings distutils where Python has none
    from distutils.core import run_setup

    from .mac_answers import answer_as_a_mac

    script = Path(SETUP)
    if "torch" in script.read_text("utf-8", "replace"):
        importlib.import_module("torch.utils.cpp_extension")
    answer_as_a_mac(Path.cwd())
    try:
        with contextlib.redirect_stdout(sys.stderr):
            distribution: Any = run_setup(SETUP, stop_after="init")
    except (Exception, SystemExit) as error:
        answer: dict[str, Any] = {"problem": one_line(error)}
    else:
        compiles = _COMPILES_METAL.search(script.read_text("utf-8", "replace")) is not None
        own = distribution.get_command_class("build_ext")
        of_torch = any(base.__module__ == "torch.utils.cpp_extension" for base in own.__mro__)
        answer = {"package_dir": dict(distribution.package_dir or {}), "steps": ""}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                _run_own_steps(distribution, compiles)
        except (Exception, SystemExit) as error:
            answer["steps"] = one_line(error) if compiles else ""
        answer["extensions"] = [
            {
                "name": extension.name,
                "sources": [str(source) for source in extension.sources],
                "flags": extension.extra_compile_args or [],
                "macros": [*extension.define_macros, *([(TORCHS_BUILDER, None)] if of_torch else [])],
                "include": [str(place) for place in extension.include_dirs],
            }
            for extension in distribution.ext_modules or ()
        ]
    report.write_text(json.dumps(answer))


if __name__ == "__main__":
    time_limit.prepare()
    time_limit.start(float(sys.argv[2]))
    _run_here(Path(sys.argv[1]))
