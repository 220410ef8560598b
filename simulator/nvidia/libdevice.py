"""Where NVIDIA's mathematics is: libdevice, a file of bitcode that several packages bring and that is never ours."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "MPSMITH_LIBDEVICE"
_NAME = "libdevice.10.bc"
# Package and the place in it: the CUDA builds of torch bring triton, the extra `nvidia` brings the first.
_PACKAGES = (
    ("nvidia.cuda_nvcc", f"nvvm/libdevice/{_NAME}"),
    ("triton", f"backends/nvidia/lib/{_NAME}"),
)
_TOOLKIT = Path("/usr/local/cuda/nvvm/libdevice") / _NAME


def libdevice() -> Path | None:
    """The file, or None where no package of this environment and no CUDA toolkit has it."""
    return next((path for path in _candidates() if path.is_file()), None)


def assembler() -> Path | None:
    """`ptxas` of the same package, which checks PTX without a GPU; None where it is not installed."""
    return next((path for path in _in_package("nvidia.cuda_nvcc", "bin/ptxas") if path.is_file()), None)


def _candidates() -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        yield Path(named)
    for package, place in _PACKAGES:
        yield from _in_package(package, place)
    yield _TOOLKIT


def _in_package(package: str, place: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(folder) / place for folder in (spec.submodule_search_locations or [])] if spec else []
