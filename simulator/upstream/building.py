"""Builds upstream's host code for this machine: a library for each file, which registers its kernels.

A library registers its kernels under the MPS key when it is loaded. A build is cached until the file, its Metal
source, its rows or the compiler change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..errors import SimulatorError, UpstreamError
from ..metal.includes import torch_include
from ..objc.building import build_extension
from ..objc.closed_functions import refusing
from ..objc.compiler import ExtensionBuildError, host_compiler
from .manifest import BuiltFile
from .operations import OperationFile, changed_headers, shader_header
from .registrations import MpsYaml

_DEFINITIONS = ("USE_MPS", "AT_PER_OPERATOR_HEADERS", "PYTORCH_JIT_COMPILE_SHADERS")
# The includes of all files, precompiled once.
_HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>

{code}
"""
# The type of int64_t on macOS, which is another one here, of the same size.
_INT64_OF_MACOS = re.compile(r"\blong\s+long\b")
_BUILT = "built.json"


def build_one(name: str, file: OperationFile | None, overloads: Sequence[str], yaml: MpsYaml) -> BuiltFile:
    """A library that registers the kernels of these overloads, which the file or, without one, torch defines.

    A function that only a file outside the patch defines raises when it is called.
    """
    try:
        return BuiltFile(name, tuple(overloads), str(_library(name, [file] if file else [], overloads, yaml)))
    except (ExtensionBuildError, UpstreamError) as error:
        return BuiltFile(name, tuple(overloads), problem=str(error))


def _library(name: str, files: Sequence[OperationFile], overloads: Sequence[str], yaml: MpsYaml) -> Path:
    include = torch_include()
    if include is None:
        raise SimulatorError("torch is not installed")
    headers = yaml.headers(include)
    for file in files:
        headers |= changed_headers(file.root, include)
        headers |= {f"ATen/native/mps/{name}_metallib.h": shader_header(file.root, name) for name in file.shaders}
    registrations = yaml.registrations(frozenset(overloads))
    parts = [text for item in sorted(headers.items()) for text in item]
    key = fingerprint(
        host_compiler(torch=True).identity,
        fingerprint_of_code("simulator.upstream", "simulator.objc"),
        name,
        *(file.text for file in files),
        registrations,
        *parts,
    )
    folder = cache_folder() / "upstream" / key
    note_file = folder / _BUILT
    if note_file.is_file():
        return folder / str(json.loads(note_file.read_text("utf-8"))["library"])
    for place, text in headers.items():
        _write(folder / "include" / place, text)
    sources = [folder / "registrations.cpp"]
    _write(sources[0], registrations)
    for file in files:
        sources.append(folder / f"{file.name}.mm")
        _write(sources[-1], _HOST.format(code=_code(file)))
    built = build_extension(
        f"upstream_{name}_{key[:8]}",
        sources,
        folder,
        arc=False,
        include=[folder / "include"],
        definitions=_DEFINITIONS,
        options=("-O0",),
        stand_ins=lambda symbols, sources: refusing(symbols),
    )
    _write(note_file, json.dumps({"library": built.library.name}))
    return built.library


def _code(file: OperationFile) -> str:
    """The file in a form for this machine's compiler: included, or as text with this machine's int64_t."""
    path = file.path.resolve()
    if not _INT64_OF_MACOS.search(file.text):
        return f'#include "{path}"'
    return f'#line 1 "{path}"\n{_INT64_OF_MACOS.sub("long", file.text)}'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
