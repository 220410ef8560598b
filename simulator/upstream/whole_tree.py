"""Builds the whole mps host code of a PyTorch tree into one library, which registers its kernels when it is loaded.

The library has the tree's own stream, device, views and copies. simulator/mpsgraph replaces MPSGraph; `host/` and files
of `torch_host/` are the rest of the backend. The cache key of an object file is the content of its sources and headers.
"""

from __future__ import annotations

import os
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ...cache import cache_folder, fingerprint
from ..errors import UpstreamError
from ..metal.includes import torch_include
from ..objc import note
from ..objc.closed_functions import refusing
from ..objc.compiler import ExtensionBuildError, HostCompiler, Unit, demangled, host_compiler, link, torch_libraries
from ..objc.host_libraries import IMAGE, frameworks_library, graph_library, linked
from .manifest import BuiltFile, TreeBuild
from .operations import (
    ATEN,
    KERNELS,
    METALLIB,
    NATIVE_FUNCTIONS,
    OPERATIONS,
    SHARED,
    TAGS,
    OperationFile,
    operation_files,
    shader_header,
)
from .probing import missing_selectors
from .registrations import MpsYaml
from .schema_check import changed_schemas
from .text_changes import changed_text

_HOST = Path(__file__).parent / "host"
_TORCH_HOST = Path(__file__).parents[1] / "objc" / "torch_host"
_BACKEND = ATEN / "ATen/mps"
# NDEBUG as in torch's own build: without it some classes have more fields.
_DEFINITIONS = ("USE_MPS", "AT_PER_OPERATOR_HEADERS", "NDEBUG")
# Without it host code loads compiled kernels.
_FROM_SOURCE = "PYTORCH_JIT_COMPILE_SHADERS"
# For all but older trees, which include the headers of all operators: those this macro forbids.
_METHODS_ALONE = "#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n"
_ALL_OPERATORS = "#include <ATen/ATen.h>"
_PROFILER = "ATen/mps/MPSProfiler.h"
# A tree's may have other fields than the device's generator.
_GENERATOR = "MPSGeneratorImpl.h"
# Trees before 2.0.1 have an allocator without it.
_INTERFACE, _ALLOCATOR = "ATen/mps/MPSAllocatorInterface.h", "ATen/mps/MPSAllocator.h"
# Precompiled once for all files of a tree.
_INCLUDES = """\
#include <mpsmith/host_prelude.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorIterator.h>
#include <c10/util/irange.h>
#include <fmt/format.h>

"""


@dataclass(frozen=True)
class _Source:
    """A text to compile, and the file that it comes from."""

    name: str
    path: Path
    text: str
    suffix: str = ".mm"


@dataclass(frozen=True)
class _Objects:
    """Compiles sources of one tree; an object file from the same text and headers is taken from the cache."""

    compiler: HostCompiler
    include: tuple[Path, ...]
    headers: str
    definitions: tuple[str, ...]

    def compile(self, source: _Source) -> Path | str:
        """The object file, or the compiler's error."""
        key = fingerprint(self.compiler.identity, self.headers, source.suffix, source.text, *self.definitions)
        folder = cache_folder() / "upstream" / "objects" / key[:2]
        target = folder / f"{key}.o"
        if target.is_file():
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as temporary:
            path, made = Path(temporary) / f"{source.name}{source.suffix}", Path(temporary) / "made.o"
            path.write_text(source.text, encoding="utf-8")
            try:
                self.compiler.compile(Unit(path, False, self.include, self.definitions, ("-O0",)), made)
            except ExtensionBuildError as error:
                return str(error)
            made.replace(target)
        return target


def build_tree(root: Path, source: str, kernels: str, report: Callable[[str], None]) -> TreeBuild:
    """Build the files of operations/ and the code that they need into one library.

    A file that does not compile is left out, and so are overloads whose schema the installed torch has changed.

    Args:
        root: the tree.
        source: what the tree is, for the result.
        kernels: the release whose compiled kernels are launched; "" for those of the tree's Metal sources.
        report: gets a line for each file.

    Raises:
        UpstreamError: the tree lacks what every file needs, or that does not compile here.
        ExtensionError: this machine lacks what a build needs.
    """
    include = torch_include()
    if include is None:
        raise UpstreamError("torch is not installed")
    files = operation_files(root)
    yaml = MpsYaml(_text(root / NATIVE_FUNCTIONS), root / TAGS)
    objects = _objects(root, yaml, include, _DEFINITIONS if kernels else (*_DEFINITIONS, _FROM_SOURCE))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        shared = _compiled_shared(root, objects, threads)
        sources = [_source(file, embedded=not kernels) for file in files]
        compiled = dict(zip((s.name for s in sources), threads.map(objects.compile, sources), strict=True))
        for name, made in compiled.items():
            report(f"{name}: {made if isinstance(made, str) else 'compiled'}")
        changed = changed_schemas(yaml)
        built = _with_overloads(files, compiled, yaml, frozenset(changed))
        registrations = [_registrations(file, yaml) for file in built if file.overloads and not file.problem]
        registered = list(threads.map(objects.compile, registrations))
    for registration, made in zip(registrations, registered, strict=True):
        if isinstance(made, str):
            raise UpstreamError(f"the registrations of {registration.name} do not compile: {made}")
    everything = [*shared, *(path for path in (*compiled.values(), *registered) if isinstance(path, Path))]
    library = _linked(root, everything)
    selectors = _senders(missing_selectors(library), root, files)
    placed = [BuiltFile(f.name, f.overloads, "" if f.problem else str(library), f.problem) for f in built]
    return TreeBuild(source, kernels, tuple(placed), changed, selectors)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UpstreamError(f"cannot read {path}: {error}; give a whole checkout of PyTorch") from None


# ------------------------------------------------------------------------------------------ headers and sources
def _objects(root: Path, yaml: MpsYaml, include: Path, definitions: tuple[str, ...]) -> _Objects:
    """The compiler with the tree's own headers of the backend before those of the installed torch."""
    texts = yaml.headers(include)
    for folder in (OPERATIONS, KERNELS, OPERATIONS.parent, _BACKEND):
        for path in sorted((root / folder).glob("*.h")):
            if path.name == _GENERATOR:
                continue
            text = changed_text(_text(path))
            once = "" if "#pragma once" in text else "#pragma once\n"  # older trees have headers without it
            texts[str(path.relative_to(root / ATEN))] = once + text
    if _INTERFACE not in texts:
        texts |= {_INTERFACE: _text(_HOST / Path(_INTERFACE).name), _ALLOCATOR: f"#include <{_INTERFACE}>\n"}
    if "isCaptureEnabled" not in texts.get(_PROFILER, "isCaptureEnabled"):
        definitions += ("MPSMITH_WITHOUT_CAPTURE",)  # before 2.3
    key = fingerprint(*(part for item in sorted(texts.items()) for part in item))
    folder = cache_folder() / "upstream" / "headers" / key
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as temporary:
            made = Path(temporary) / "made"
            for place, text in texts.items():
                (made / place).parent.mkdir(parents=True, exist_ok=True)
                (made / place).write_text(text, encoding="utf-8")
            made.rename(folder)
    contents = (path.read_bytes() for path in sorted((_HOST / "include").rglob("*.h")))
    folders = (_HOST / "include", folder)
    return _Objects(host_compiler(torch=True), folders, fingerprint(key, *contents), definitions)


def _source(file: OperationFile, *, embedded: bool = False) -> _Source:
    """A file with the precompiled includes before it; `embedded`: with its Metal sources inserted into the text.

    Its `#line` is relative to the tree's root, so that a file that two trees share is compiled once.
    """
    text = changed_text(file.text)
    if embedded:
        text = METALLIB.sub(lambda include: shader_header(file.root, include[1]), text)
    head = f'{_methods_alone(file.root)}{_INCLUDES}#line 1 "{file.path.relative_to(file.root)}"\n'
    return _Source(file.name, file.path, head + text)


def _methods_alone(root: Path) -> str:
    return "" if _ALL_OPERATORS in _text(root / OPERATIONS.parent / "OperationUtils.h") else _METHODS_ALONE


def _compiled_shared(root: Path, objects: _Objects, threads: ThreadPoolExecutor) -> list[Path]:
    """The object files of the backend itself: the tree's, and our own. Raises UpstreamError if one does not compile."""
    sources = [_source(OperationFile(root, root / place)) for place in SHARED]
    ours = [*sorted(_HOST.glob("*.mm")), _TORCH_HOST / "generator.mm", _TORCH_HOST / "profiler.mm"]
    sources += [_Source(path.stem, path, _methods_alone(root) + _text(path)) for path in ours]
    made: list[Path] = []
    for source, result in zip(sources, threads.map(objects.compile, sources), strict=True):
        if isinstance(result, str):
            raise UpstreamError(f"{source.path} does not compile, and every other file needs it: {result}")
        made.append(result)
    return made


# ------------------------------------------------------------------------------------------ registrations and linking
# The copy_ of torch for Linux does not call mps_copy_. That of torch for macOS checks its arguments before the call, as
# here, and copies nothing where there are no elements.
_COPY = """
#include <ATen/TensorIterator.h>
namespace at::native::mps { at::Tensor& mps_copy_(at::Tensor& dst, const at::Tensor& src, bool non_blocking); }
static at::Tensor& copied(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (to.is_same(from)) return to;
  TORCH_CHECK_NOT_IMPLEMENTED(!from.is_meta(), "Cannot copy out of meta tensor; no data!");
  const auto both = at::TensorIteratorConfig().add_output(to).add_const_input(from).resize_outputs(false)
      .check_all_same_dtype(false).check_all_same_device(false).build();
  return both.numel() == 0 ? to : at::native::mps::mps_copy_(to, from, non_blocking);
}
TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("copy_", TORCH_FN(copied)); }
"""


def _with_overloads(
    files: Iterable[OperationFile], compiled: Mapping[str, Path | str], yaml: MpsYaml, changed: frozenset[str]
) -> list[BuiltFile]:
    """The overloads of each file. If several files define one, the first that compiled has it."""
    taken: set[str] = set(changed)
    built = []
    for file in files:
        made = compiled[file.name]
        served = tuple(k.overload for k in yaml.kernels if k.overload not in taken and file.serves(k))
        problem = made if isinstance(made, str) else ""
        taken.update(() if problem else served)
        built.append(BuiltFile(file.name, served, problem=problem))
    return built


def _registrations(file: BuiltFile, yaml: MpsYaml) -> _Source:
    text = yaml.registrations(frozenset(file.overloads))
    return _Source(file.name, Path(), text + _COPY * ("_copy_from" in file.overloads), ".cpp")


def _linked(root: Path, objects: Sequence[Path]) -> Path:
    """Link these object files into a library. A function that none of them defines raises when it is called."""
    graphs, frameworks = graph_library(), frameworks_library()
    key = fingerprint(str(graphs), str(frameworks), note.current("").host, *(path.name for path in objects))
    folder = cache_folder() / "upstream" / "libraries" / key
    library = folder / f"mps_host_{key[:8]}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    # torch_host defines the same symbols globally: the library must bind to its own.
    words = [*linked(graphs), *linked(frameworks), *torch_libraries(), "-Wl,-Bsymbolic"]
    compiler = host_compiler(torch=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as temporary:
        noted = Path(temporary) / "note.o"
        # Selectors that nothing implements are looked for after linking, and reported with their files.
        # The backend itself may use addresses of device memory; an extension must not.
        text = note.write(Path(temporary), library.name.partition(".")[0], (IMAGE,))
        compiler.compile(Unit(text), noted)
        made = Path(temporary) / library.name
        undefined = link([*objects, noted], made, words)
        if undefined and (defining := refusing(undefined)):
            text, extra = Path(temporary) / "undefined.cpp", Path(temporary) / "undefined.o"
            text.write_text(defining)
            compiler.compile(Unit(text), extra)
            undefined = link([*objects, noted, extra], made, words)
        if undefined:
            raise UpstreamError(f"{root} does not link: {', '.join(demangled(undefined[:3]))} is defined nowhere")
        made.replace(library)
    return library


def _senders(selectors: Sequence[str], root: Path, files: Sequence[OperationFile]) -> dict[str, tuple[str, ...]]:
    """For each selector, the files whose text contains all its parts, and so may send it."""
    texts = {file.path.name: file.text for file in files}
    texts |= {place.name: _text(root / place) for place in SHARED}
    senders = {}
    for selector in selectors:
        words = [f"{word}:" for word in selector.split(":") if word] if ":" in selector else [selector]
        senders[selector] = tuple(name for name, text in texts.items() if all(word in text for word in words))
    return senders
