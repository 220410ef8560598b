"""Installs the simulated `torch.mps.compile_shader`."""

from __future__ import annotations

from ..errors import MetalRuntimeError
from .includes import embed, include_folders
from .library import ShaderLibrary, compile_program
from .modes import mode_from_environment


def compile_shader(source: str) -> ShaderLibrary:
    """Compile Metal source for the simulated mps device; `install` makes it `torch.mps.compile_shader`.

    Raises:
        MetalSyntaxError: the source does not compile (a SyntaxError, as on a Mac).
    """
    program = embed(source, folders=include_folders(None))
    return compile_program(program, mode=mode_from_environment(), device="mps")


def _compile_embedded(source: str) -> ShaderLibrary:
    """`torch._C._mps_compileShader`: torch has already embedded its headers."""
    return compile_program(embed(source), mode=mode_from_environment(), device="mps")


def install() -> None:
    """Make `torch.mps.compile_shader` run Metal source on the host; `MPSMITH_METAL_MODE` is the checking mode.

    Call it after the simulated device is loaded. Further calls do nothing.

    Raises:
        MetalRuntimeError: this torch has the real function: this is a Mac.
    """
    import torch
    import torch.mps

    if getattr(torch._C, "_mps_compileShader", _compile_embedded) is not _compile_embedded:
        raise MetalRuntimeError("torch has a real mps device here: its own compile_shader stays")
    torch.mps.compile_shader = compile_shader
    # For code that keeps a reference to torch's own functions.
    for name, function in (("_mps_compileShader", _compile_embedded), ("_mps_ShaderLibrary", ShaderLibrary)):
        setattr(torch._C, name, function)
