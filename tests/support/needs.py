"""What tests need of the machine. Where it is not there, the module, fixture or test that asks for it is skipped."""

from __future__ import annotations

from functools import cache

import pytest

from mpsmith.simulator.clang import CompilerMissingError
from mpsmith.simulator.device import loading


def needs_metal_on_host() -> None:
    """Metal source compiles and runs on the CPU: Linux with ziglang."""
    _skip_if(_why_no_metal())


def needs_simulated_device() -> None:
    """`device="mps"` can be simulated: a torch without mps."""
    import torch

    is_a_mac = torch.backends.mps.is_built() and not loading.is_loaded()
    _skip_if("a Mac has no simulated mps device" if is_a_mac else "")


def needs_a_device() -> None:
    """`device="mps"` works: a real one, or a torch without mps, for which it is simulated."""
    import torch

    if not torch.backends.mps.is_available():
        needs_simulated_device()


@cache
def _why_no_metal() -> str:
    from mpsmith.simulator.metal.compiler import default_compiler

    try:
        default_compiler()
    except CompilerMissingError as error:
        return str(error)
    return ""


def _skip_if(reason: str) -> None:
    return pytest.skip(reason, allow_module_level=True) if reason else None
