"""Reads the extensions of a folder's build.toml, the file of Hugging Face's kernel-builder.

Writes the files that the builder generates on a Mac: a header with the library of the `.metal` files, the header of
registrations, and the package's module of operators. Only kernels of the backend metal are built.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from ...errors import one_line
from ...simulator.objc.apple.location import metal_cpp_folder
from ...simulator.objc.compile_options import CompileOptions
from ..errors import ScaffoldError
from .apple_tools import library_of
from .setup_script import ExtensionRequest, SetupScript

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_GENERATED: dict[str, str] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
BUILD_FILE = "build.toml"
LOCAL_KERNEL = "MPSMITH_TRY_KERNEL"
"""Environment variable: the kernel that tests get from the module `kernels`, as REPOSITORY=PACKAGE."""

_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc", ".cuh")


def requests_of_build_file(folder: Path) -> SetupScript:
    """Return the extensions of a folder's build.toml; write the files that the builder generates.

    Raises:
        ScaffoldError: the file is not TOML, lacks a required part, or requests something that cannot be built here.
    """
    build = _read(folder)
    general = build.get("general", {})
    package = _package(folder, general)
    packages, repository = folder / "torch-ext", general.get("hub", {}).get("repo-id", "")
    local = f"{repository}={package}" if repository else ""
    place = packages / package
    if not place.is_dir():
        raise ScaffoldError(f"{folder / BUILD_FILE} needs the folder torch-ext/{package} for its package")
    of_metal = [
        key
        for key, kernel in build.get("kernel", {}).items()
        if "metal" in (kernel.get("backend"), kernel.get("language"))
    ]
    kernels = {key: build["kernel"][key] for key in of_metal}
    name = f"_{package}_metal_mpsmith"
    framework: Mapping[str, Any] = build.get("torch", {})
    compiled = "torch" in build and not framework.get("universal")
    loaded = f"from . import {name}\n" if compiled else ""
    (place / "_ops.py").write_text(_GENERATED["operators"] % {"name": name, "loaded": loaded})
    if not compiled:
        if "torch-noarch" in build or framework:
            return SetupScript((), packages, kernel=local)
        raise ScaffoldError(f"{folder / BUILD_FILE} has no [torch]: only kernels for torch are built here")
    if "metal" not in general.get("backends", ["metal"] if kernels else []):
        raise ScaffoldError(f"{folder / BUILD_FILE} does not list the backend metal")
    for title, section in {"torch": framework, **{f"kernel.{key}": kernels[key] for key in kernels}}.items():
        if "src" not in section:
            raise ScaffoldError(f"{folder / BUILD_FILE}: [{title}] has no src")
    sources = [folder / source for section in (framework, *kernels.values()) for source in section["src"]]
    include = [folder / path for section in (framework, *kernels.values()) for path in section.get("include", ())]
    if any("metal-cpp" in section.get("depends", ()) for section in kernels.values()):
        if not metal_cpp_folder().is_dir():
            raise ScaffoldError(f"{BUILD_FILE} depends on metal-cpp; fetch it once with: mpsmith check --setup")
        include.append(metal_cpp_folder())
    generated = folder / "kernel-builder"
    generated.mkdir(exist_ok=True)
    (packages / "registration.h").write_text(_GENERATED["registration"])
    definitions = ["METAL_KERNEL", *_stable_abi(framework.get("stable-abi", {}).get("metal", ""))]
    metal = [path for path in sources if path.suffix == ".metal"]
    if gone := [path for path in metal if not path.is_file()]:
        raise ScaffoldError(f"{BUILD_FILE} names {gone[0]}, which is not there")
    if metal:
        data = library_of(metal, include, ())
        (generated / f"{name}_metallib.h").write_text(
            _GENERATED["library"] % {"name": name, "bytes": ",".join(map(str, data))}
        )
        definitions += [f'EMBEDDED_METALLIB_HEADER="{name}_metallib.h"', f"EMBEDDED_METALLIB_NAMESPACE={name}_metal"]
    # The C++ standard is the one of torch's own builder; files of C have none.
    options = CompileOptions(False, (folder / "csrc", *include, generated), tuple(definitions))
    others = tuple(path for path in sources if path.suffix not in (".metal", *_HEADERS))
    return SetupScript((ExtensionRequest(f"{package}.{name}", others, options, place),), packages, kernel=local)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / BUILD_FILE
    try:
        build: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ScaffoldError(f"cannot read {path}: {one_line(error)}") from error
    return build


def _package(folder: Path, general: Mapping[str, Any]) -> str:
    if not isinstance(general.get("name"), str):
        raise ScaffoldError(f"{folder / BUILD_FILE}: [general] has no name")
    return str(general["name"]).replace("-", "_")


def _stable_abi(version: str) -> list[str]:
    if not version:
        return []
    major, minor = (int(part) for part in version.split(".")[:2])
    return [f"TORCH_TARGET_VERSION={major << 56 | minor << 48:#x}"]


def offer_local_kernel(named: str) -> None:
    """Make `get_kernel` of the module `kernels` return the kernel that was built, as the builder's test shell does.

    `named`: REPOSITORY=PACKAGE. If `kernels` is not installed, a module with only this kernel takes its place.
    A package named `kernels` in the working folder, such as one of tests, is imported unchanged.
    """
    repository, _, package = named.partition("=")
    sys.meta_path.insert(0, _KernelsFinder(repository, package, Path.cwd().resolve()))


@dataclass(frozen=True)
class _KernelsFinder(MetaPathFinder):
    """Finds the module `kernels`, and makes it return the built package for a repository."""

    repository: str
    package: str
    folder: Path

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != "kernels":
            return None
        spec = PathFinder.find_spec(fullname)
        if spec is None:
            return spec_from_loader(fullname, _KernelsLoader(self, None))
        if spec.loader is None or self.folder in Path(spec.origin or "").resolve().parents:
            return spec
        return spec_from_file_location(
            fullname,
            spec.origin,
            loader=_KernelsLoader(self, spec.loader),
            submodule_search_locations=spec.submodule_search_locations,
        )


@dataclass(frozen=True)
class _KernelsLoader(Loader):
    finder: _KernelsFinder
    installed: Loader | None

    def exec_module(self, module: ModuleType) -> None:
        if self.installed is not None:
            self.installed.exec_module(module)
        others = getattr(module, "get_kernel", None)

        def get_kernel(repo_id: str, *arguments: Any, **options: Any) -> Any:
            if repo_id == self.finder.repository:
                return importlib.import_module(self.finder.package)
            if others is None:
                raise ModuleNotFoundError(f"No module named 'kernels' to fetch {repo_id}", name="kernels")
            return others(repo_id, *arguments, **options)

        package = self.finder.package
        vars(module).update(get_kernel=get_kernel, get_local_kernel=lambda folder: importlib.import_module(package))
