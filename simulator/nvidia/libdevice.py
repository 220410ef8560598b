"""Finds libdevice, NVIDIA's mathematical functions: a bitcode file of several packages, not of mpsmith."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "MPSMITH_LIBDEVICE"
_NAME = "libdevice.10.bc"
# Packages and paths: the extra `nvidia` installs the first, CUDA builds of torch install triton.
_PACKAGES = (
    ("nvidia.cuda_nvcc", f"nvvm/libdevice/{_NAME}"),
    ("triton", f"backends/nvidia/lib/{_NAME}"),
)
_TOOLKIT = Path("/usr/local/cuda/nvvm/libdevice") / _NAME


def libdevice() -> Path | None:
    """The file, or None if it is not installed."""
    return next((path for path in _candidates() if path.is_file()), None)


def assembler() -> Path | None:
    """`ptxas` of the same package, which checks PTX without a GPU; None if it is not installed."""
    return next((path for path in _in_package("nvidia.cuda_nvcc", "bin/ptxas") if path.is_file()), None)


def _candidates() -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        yield Path(named)
    for package, path in _PACKAGES:
        yield from _in_package(package, path)
    yield _TOOLKIT


def _in_package(package: str, path: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(folder) / path for folder in (spec.submodule_search_locations or [])] if spec else []
