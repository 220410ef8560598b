"""Builds the extensions of a folder's setup.py for the simulated device on Linux, without its build commands."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from ...cache import cache_folder, fingerprint
from ...simulator.objc import host_libraries
from ...simulator.objc.building import BuiltExtension, build_extension
from ...simulator.objc.compile_options import parse_options
from ...simulator.objc.compiler import host_compiler
from .setup_script import ExtensionRequest, requests_of
from .subject import BuildSubject

_NOT_COMPILED = (".py", ".pyc", ".md", ".metallib")
_READS_METAL = re.compile(rb"#\s*include[^\n]*\.metal\b|#\s*embed|incbin")


def build(subject: BuildSubject) -> list[BuiltExtension]:
    """Build the modules of a file or of a folder's setup.py.

    Raises:
        ExtensionBuildError: a file does not compile or link; it has the compiler's messages.
        ExtensionError: this machine lacks what a build needs; ScaffoldError: the setup.py requests no extension.
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


def built_or_kept(request: ExtensionRequest, folder: Path) -> None:
    """Build one extension into its place, or copy an earlier build from the same files of its project's folder.

    Metal files that no host code includes may change, because they are read at run time. Raises as `build` does.
    """
    contents = {
        path: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in _NOT_COMPILED
    }
    with_metal = any(_READS_METAL.search(content) for content in contents.values())
    texts = {str(path): content for path, content in contents.items() if with_metal or path.suffix != ".metal"}
    libraries = (host_libraries.frameworks_library(), host_libraries.torch_host_library())
    parts = (host_compiler(torch=True).identity, repr(request), *map(str, libraries))
    key = fingerprint(*parts, *(part for item in texts.items() for part in item))
    place = cache_folder() / "objc" / "extensions" / key
    library = next(place.glob("*.so"), None) or built(replace(request, place=place)).library
    request.place.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library, request.place)
