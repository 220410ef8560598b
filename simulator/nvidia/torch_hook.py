"""Installs a `torch.mps.compile_shader` for an NVIDIA GPU."""

from __future__ import annotations

from .library import Device, NvidiaLibrary, compile_library


def install(device: Device) -> None:
    """Make `torch.mps.compile_shader` compile for the first NVIDIA GPU.

    `device`: "mps" for tensors of the loaded simulated device; "cuda" for tensors on the GPU.

    Raises:
        NoNvidiaDriverError: this machine has no NVIDIA GPU.
    """
    import torch.mps

    from .driver import default_driver

    default_driver()

    def compile_shader(source: str) -> NvidiaLibrary:
        return compile_library(source, device=device)

    torch.mps.compile_shader = compile_shader
