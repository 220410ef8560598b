"""Builds on Linux, for the simulated device: what a folder's setup.py asks for, without running its commands."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import one_line
from ...simulator.objc.building import BuiltExtension, build_extension
from ...simulator.objc.compile_options import CompileOptions, parse_options
from ..errors import ScaffoldError
from .subject import SETUP, BuildSubject


@dataclass(frozen=True)
class ExtensionRequest:
    """One extension: its full name as a module, and what it is built from."""

    name: str
    sources: tuple[Path, ...]
    options: CompileOptions


def build(subject: BuildSubject) -> list[BuiltExtension]:
    """Build the modules of a file or of a folder's setup.py.

    Raises:
        ExtensionBuildError: a file does not compile or link; it has the compiler's messages.
        ExtensionError: this machine lacks what a build needs; ScaffoldError: the setup.py asks for no extension.
    """
    if subject.is_file:
        return [build_extension(subject.name, [subject.path], subject.out, arc=subject.arc)]
    return [_built(request, subject.path) for request in requests_of(subject.path)]


def requests_of(folder: Path) -> list[ExtensionRequest]:
    """What a folder's setup.py asks for. It is executed, as for any build, up to its call of `setup`.

    Raises:
        ScaffoldError: it fails, or asks for no extension.
    """
    importlib.import_module("setuptools")  # brings distutils where Python has none
    from distutils.core import run_setup

    try:
        with _working_in(folder):
            made: Any = run_setup(SETUP, stop_after="init")
    except (Exception, SystemExit) as error:
        raise ScaffoldError(f"{folder / SETUP} fails: {one_line(error)}") from error
    requests = [_request(extension, folder) for extension in made.ext_modules or ()]
    if not requests:
        raise ScaffoldError(f"{folder / SETUP} asks for no extension module")
    return requests


def _request(extension: Any, folder: Path) -> ExtensionRequest:
    flags = extension.extra_compile_args or []
    if isinstance(flags, dict):
        flags = flags.get("cxx", [])
    macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    options = parse_options([*macros, *flags])
    # torch's own headers are found without being asked for.
    own = [folder / place for place in extension.include_dirs if "torch/include" not in Path(place).as_posix()]
    return ExtensionRequest(
        extension.name, tuple(folder / source for source in extension.sources), options.including(own)
    )


def _built(request: ExtensionRequest, folder: Path) -> BuiltExtension:
    package, _, name = request.name.rpartition(".")
    options = request.options
    return build_extension(
        name,
        request.sources,
        folder.joinpath(*package.split(".")) if package else folder,
        arc=options.arc,
        include=options.include,
        definitions=options.definitions,
        options=options.others,
    )


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
