"""Lets a program build and load Objective-C++ extensions as on a Mac, in a process with the simulated device.

It changes `torch.utils.cpp_extension.load`, `torch.ops.load_library` and `import` for extensions of Objective-C++.
Other extensions are not affected.
"""

from __future__ import annotations

import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from ...cache import cache_folder, fingerprint
from ...errors import near
from ..errors import ExtensionError
from . import note
from .building import TORCHS_BUILDER, build_extension
from .compile_options import CompileOptions, parse_options
from .compiler import ExtensionBuildError, host_compiler
from .loading import load_extension

_BUILDER = "torch.utils.cpp_extension"
_HEADERS = ("*.h", "*.hpp", "*.metal")


def install() -> None:
    """Install the hooks after the simulated device is loaded. Further calls do nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    import torch

    sys.meta_path.insert(_path_finder_position(), _Finder())
    libraries: Any = type(torch.ops)
    libraries.load_library = _loading_library(libraries.load_library)
    if _BUILDER in sys.modules:
        _hook_builder(sys.modules[_BUILDER])


def _path_finder_position() -> int:
    names = [getattr(finder, "__name__", "") for finder in sys.meta_path]
    return names.index("PathFinder") if "PathFinder" in names else len(names)


# ------------------------------------------------------------------------------------------ import
class _Finder(MetaPathFinder):
    """The path finder, with a different loader for built extensions and with the hook for torch's extension builder."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return spec
        if name == _BUILDER and spec.loader is not None:
            spec.loader = _BuilderLoader(spec.loader)
        elif isinstance(spec.loader, importlib.machinery.ExtensionFileLoader) and _is_built_here(Path(spec.origin)):
            spec.loader = _ExtensionLoader()
        return spec


class _ExtensionLoader(Loader):
    """Imports an extension that was built for the simulated device."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            module = load_extension(Path(str(spec.origin)), spec.name)
        except ExtensionError as error:
            raise ImportError(str(error), name=spec.name, path=spec.origin) from error
        if module is None:
            raise ImportError(f"{spec.origin} defines no module {spec.name}", name=spec.name, path=spec.origin)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: `create_module` has executed it."""


class _BuilderLoader(Loader):
    """Imports torch.utils.cpp_extension and installs the hook in it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _hook_builder(module)


def _is_built_here(library: Path) -> bool:
    try:
        return note.read(library) is not None
    except OSError:
        return False


# ------------------------------------------------------------------------------------------ torch
def _loading_library(original: Callable[..., None]) -> Callable[..., None]:
    def load_library(operators: Any, path: str) -> None:
        if not _is_built_here(Path(path)):
            original(operators, path)
            return
        try:
            load_extension(Path(path))
        except ExtensionError as error:
            raise OSError(str(error)) from error
        operators.loaded_libraries.add(str(Path(path).resolve()))

    return load_library


def _hook_builder(builder: Any) -> None:
    original = builder.load

    def load(name: str, sources: str | list[str], *arguments: Any, **options: Any) -> Any:
        paths = [Path(source) for source in ([sources] if isinstance(sources, str) else sources)]
        if not any(path.suffix == ".mm" for path in paths):
            return original(name, sources, *arguments, **options)
        given = inspect.signature(original).bind(name, sources, *arguments, **options)
        given.apply_defaults()
        return _load(name, paths, given.arguments)

    load.__doc__ = original.__doc__
    builder.load = load


def _load(name: str, sources: Sequence[Path], given: dict[str, Any]) -> ModuleType | str | None:
    """`torch.utils.cpp_extension.load` for the simulated device, with the same exceptions."""
    _refuse_missing(sources)
    options = parse_options(given["extra_cflags"] or ())
    include = given["extra_include_paths"] or ()
    options = options.including([include] if isinstance(include, str) else include)
    chosen = given["build_directory"]
    folder = Path(chosen) if chosen else _cached_folder(name, sources, options)
    library = next(folder.glob(f"{name}.*so"), None) if not chosen else None
    try:
        if library is None:
            library = build_extension(
                name,
                sources,
                folder,
                arc=bool(options.arc),  # as clang, unless the flags ask for it
                include=options.include,
                definitions=(*options.definitions, TORCHS_BUILDER),
                options=options.others,
            ).library
        module = load_extension(library, name)
    except ExtensionBuildError as error:
        text = "\n".join(map(str, error.diagnostics)) or str(error)
        raise RuntimeError(f"Error building extension '{name}': {text}") from error
    except ExtensionError as error:
        raise ImportError(str(error), name=name, path=str(library)) from error
    if given.get("is_python_module", True):
        if module is None:
            raise ImportError(f"{library} defines no module {name}", name=name, path=str(library))
        return module
    return str(library)


def _refuse_missing(sources: Sequence[Path]) -> None:
    for source in sources:
        if not source.is_file():
            files = [path.name for path in source.parent.glob("*.mm")] if source.parent.is_dir() else []
            raise RuntimeError(f"there is no file {source}{near(source.name, files)}")


def _cached_folder(name: str, sources: Sequence[Path], options: CompileOptions) -> Path:
    """The cache folder of an extension. Its name changes with sources, options and the headers next to the sources."""
    folders = dict.fromkeys([*(source.resolve().parent for source in sources), *options.include])
    headers = sorted(path for folder in folders for pattern in _HEADERS for path in folder.rglob(pattern))
    read = (path.read_bytes() for path in (*sources, *headers))
    key = fingerprint(host_compiler(torch=True).identity, repr(options), *map(str, sources), *read)
    return cache_folder() / "objc" / "extensions" / key / name
