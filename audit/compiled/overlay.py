"""Replaces the Metal code generator of the installed Inductor by that of another release, or by a faulty one.

Inductor's mps back end is one Python module with a folder of Metal headers. Only that module is replaced; tracing,
decompositions, lowerings and scheduling stay those of the installed release. No user has such a combination, so its
results are labelled *overlay*.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import MpsmithError, one_line
from ...simulator.metal.includes import embed, include_folders
from ...simulator.metal.library import compile_program
from ...simulator.metal.modes import mode_from_environment
from ..releases.wheel.code_generator import GENERATOR, code_generator

_PACKAGE = "torch._inductor.codegen"
MODULE = f"{_PACKAGE}.mps"


class OverlayError(MpsmithError):
    """A code generator does not work with the installed Inductor."""


@dataclass(frozen=True)
class Generator:
    """A code generator to use in place of the installed one.

    Attributes:
        label: its name in messages, such as "torch 2.15.0".
        module: the file that replaces torch/_inductor/codegen/mps.py.
        include: a folder that is searched for Metal headers before the installed one; None for those alone.
    """

    label: str
    module: Path
    include: Path | None = None


def generator_of(release: str) -> Generator:
    """The code generator of a release, from its macOS wheel. Raises WheelError if it is not available."""
    folder = code_generator(release)
    return Generator(f"torch {release}", folder / GENERATOR, folder / "torch" / "include")


@contextmanager
def overlaid(generator: Generator) -> Iterator[None]:
    """A context in which torch.compile generates Metal with this generator, on the simulated device.

    Inductor's caches are off, because their keys do not include the generator.

    Raises OverlayError if the installed Inductor lacks what the generator needs to be imported.
    """
    import torch
    from torch._inductor import config
    from torch._inductor.codegen import common

    common.init_backend_registration()
    package = importlib.import_module(_PACKAGE)
    back_end, installed, compile_shader = common.device_codegens["mps"], sys.modules[MODULE], torch.mps.compile_shader
    try:
        scheduling = _imported(generator).MetalScheduling
        _call_kernels_by_name(scheduling)
        common.device_codegens["mps"] = replace(back_end, scheduling=scheduling)
        if generator.include is not None:
            torch.mps.compile_shader = _compiling_with(generator.include)
        with config.patch(force_disable_caches=True):
            yield
    finally:
        common.device_codegens["mps"], torch.mps.compile_shader = back_end, compile_shader
        sys.modules[MODULE] = installed
        package.mps = installed  # type: ignore[attr-defined]  # a package's module is its attribute


def _imported(generator: Generator) -> ModuleType:
    """Import the generator as a module of Inductor, in place of the installed one."""
    spec = importlib.util.spec_from_file_location(MODULE, generator.module)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a module of another release raises
        raise OverlayError(
            f"the code generator of {generator.label} cannot be laid over the installed Inductor: {one_line(error)}"
        ) from None
    importlib.import_module(_PACKAGE).mps = module  # type: ignore[attr-defined]
    return module


def _call_kernels_by_name(scheduling: Any) -> None:
    """Append the kernel's name, as wrappers did from 2.9 to 2.11, when generators returned a kernel's library."""
    source = inspect.getsource(scheduling)
    if ".generated_kernel" in source or "async_compile" in source:
        return
    define = scheduling.define_kernel

    def define_kernel(*arguments: Any) -> str:
        return f"{define(*arguments)}.generated_kernel"

    scheduling.define_kernel = define_kernel


def _compiling_with(include: Path) -> Any:
    """`torch.mps.compile_shader` with another folder of headers."""

    def compile_shader(source: str) -> Any:
        program = embed(source, folders=include_folders(None, [include]))
        return compile_program(program, mode=mode_from_environment(), device="mps")

    return compile_shader
