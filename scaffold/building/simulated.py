"""Builds on Linux, for the simulated device: what a folder's setup.py asks for, without running its commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...simulator.objc.building import BuiltExtension, build_extension
from ...simulator.objc.compile_options import parse_options
from .setup_script import ExtensionRequest, requests_of
from .subject import BuildSubject


def build(subject: BuildSubject) -> list[BuiltExtension]:
    """Build the modules of a file or of a folder's setup.py.

    Raises:
        ExtensionBuildError: a file does not compile or link; it has the compiler's messages.
        ExtensionError: this machine lacks what a build needs; ScaffoldError: the setup.py asks for no extension.
    """
    if subject.is_file:
        options = replace(parse_options(subject.flags), arc=subject.arc).from_folder(Path.cwd())
        return [built(ExtensionRequest(subject.name, (subject.path,), options, subject.out))]
    return [built(request) for request in requests_of(subject.path).requests]


def built(request: ExtensionRequest) -> BuiltExtension:
    """Build one extension into its place. Raises as `build` does."""
    options = request.options
    return build_extension(
        request.name.rpartition(".")[2],
        request.sources,
        request.place,
        arc=options.arc,
        include=options.include,
        definitions=options.definitions,
        options=options.others,
    )
