"""Builds upstream's host code for this machine: a library for each file, which registers its kernels.

A library registers its kernels under the MPS key when it is loaded. What was built is kept until the file, its Metal
source, its rows or the compiler change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..errors import SimulatorError, UpstreamError
from ..metal.includes import torch_include
from ..objc.building import build_extension
from ..objc.compiler import ExtensionBuildError, host_compiler
from .closed_functions import refusing
from .operations import OperationFile, changed_headers, companions, shader_header
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
_MANIFEST = "upstream.json"
_BUILT = "built.json"


@dataclass(frozen=True)
class BuiltFile:
    """The result of building a file.

    Attributes:
        name: the file's name without suffix; of rows alone, a name for them.
        overloads: the overloads that its library registers, without namespace.
        library: the library; empty where there is none.
        problem: why there is no library, or "".
        closed: whether it was not tried, since it needs what is Apple's and closed.
    """

    name: str
    overloads: tuple[str, ...]
    library: str = ""
    problem: str = ""
    closed: bool = False

    @property
    def built(self) -> bool:
        """Whether a library was built."""
        return bool(self.library)


def build_files(files: Iterable[OperationFile], yaml: MpsYaml) -> Iterator[BuiltFile]:
    """Build files one after another; yields each result.

    A kernel whose stubs several files fill is registered by the first that builds.
    Raises ExtensionError where this machine lacks what a build needs.
    """
    host_compiler(torch=True)
    registered: set[str] = set()
    for file in files:
        served = [kernel.overload for kernel in yaml.kernels if file.serves(kernel)]
        served = [overload for overload in served if overload not in registered]
        if file.refused:
            yield BuiltFile(file.name, tuple(served), problem=file.refused, closed=True)
            continue
        built = build_one(file.name, file, served, yaml)
        registered.update(served if built.built else ())
        yield built


def build_one(name: str, file: OperationFile | None, overloads: Sequence[str], yaml: MpsYaml) -> BuiltFile:
    """A library that registers the kernels of these overloads, defined by the file or, without one, by torch itself.

    What the file calls of others beside it is compiled with it. A function that only a closed file defines raises.
    """
    files = companions(file) if file else []
    try:
        return BuiltFile(name, tuple(overloads), str(_library(name, files, overloads, yaml)))
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
    known = folder / _BUILT
    if known.is_file():
        return folder / str(json.loads(known.read_text("utf-8"))["library"])
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
        stand_ins=refusing,
    )
    _write(known, json.dumps({"library": built.library.name}))
    return built.library


def _code(file: OperationFile) -> str:
    """The file as this machine's compiler takes it: included, or with int64_t as it is spelled here."""
    path = file.path.resolve()
    if not _INT64_OF_MACOS.search(file.text):
        return f'#include "{path}"'
    return f'#line 1 "{path}"\n{_INT64_OF_MACOS.sub("long", file.text)}'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_manifest(folder: Path, source: Path, files: Collection[BuiltFile]) -> Path:
    """Write a manifest of a build, for audits to load; returns its file."""
    path = folder / _MANIFEST
    _write(path, json.dumps({"source": str(source), "files": [asdict(file) for file in files]}, indent=1) + "\n")
    return path


def read_manifest(folder: Path) -> list[BuiltFile]:
    """Read the manifest of a folder. Raises UpstreamError if there is none, or it is damaged."""
    path = folder / _MANIFEST
    try:
        data = json.loads(path.read_text("utf-8"))
        return [BuiltFile(**{**row, "overloads": tuple(row["overloads"])}) for row in data["files"]]
    except FileNotFoundError:
        raise UpstreamError(
            f"{folder} has no {_MANIFEST}: build one with mpsmith upstream build --source CHECKOUT"
        ) from None
    except (OSError, ValueError, TypeError, KeyError):
        raise UpstreamError(f"{path} is damaged: build it again with mpsmith upstream build") from None


def load_files(files: Iterable[BuiltFile], load: Callable[[Path], object]) -> tuple[str, ...]:
    """Load the libraries of a build with `load` (simulator.objc.loading.load_extension).

    Answers the overloads, with their namespace, that upstream's kernels now answer.
    """
    answered: list[str] = []
    for file in files:
        if file.built:
            load(Path(file.library))
            answered += [f"aten::{overload}" for overload in file.overloads]
    return tuple(answered)
