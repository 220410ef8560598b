"""Metal source that is compiled when one of its kernels is first requested, once for each device."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch

_ROOT = Path(__file__).parent.parent
_INCLUDE = re.compile(r'^#include "(?P<name>[^"]+)"[ \t]*$', re.MULTILINE)

# The Metal types of the dtypes that a tensor on mps can have.
METAL_TYPES: dict[torch.dtype, str] = {
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat",
    torch.int64: "long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.bool: "bool",
    torch.complex64: "float2",
}


# Whether kernels can report errors: compile_shader takes a buffer for them since torch 2.11.
REPORTS_ERRORS = torch.__version__ >= "2.11"


class MetalKernel(Protocol):
    """A function of a library that `torch.mps.compile_shader` returned."""

    def __call__(
        self,
        *args: object,
        threads: int | Sequence[int] | None = ...,
        group_size: int | Sequence[int] | None = ...,
        arg_casts: str | dict[int, str] | None = ...,
        error_buf_idx: int = ...,
    ) -> None:
        """Bind argument i to buffer i and run."""


class Shader:
    """The Metal source beside a Python module: `Shader(__file__)` of `shrink.py` is `shrink.metal`.

    `#include "shared/x.metal"` is replaced by that file of this package, once, because `compile_shader` takes one text.
    """

    def __init__(self, module: str) -> None:
        self.path = Path(module).with_suffix(".metal")
        self._kernels: dict[tuple[torch.device, str], MetalKernel] = {}
        self._libraries: dict[torch.device, object] = {}
        self._compiling = threading.Lock()

    def kernel(self, name: str, device: torch.device) -> MetalKernel:
        """The kernel of that name, compiled for `device` if it is not compiled yet.

        Raises SyntaxError if Metal refuses the source, RuntimeError if it has no kernel of that name or this torch
        cannot compile any.
        """
        kernel = self._kernels.get((device, name))
        if kernel is None:
            kernel = getattr(self._library(device), name)
            self._kernels[device, name] = kernel
        return kernel

    def source(self) -> str:
        """The text that is compiled, with its includes; `#line` directives keep the positions of errors."""
        return assembled(self.path)

    def _library(self, device: torch.device) -> object:
        with self._compiling:
            if not hasattr(torch.mps, "compile_shader"):
                raise RuntimeError(
                    f"torch {torch.__version__} cannot compile Metal; mpsmith's kernels need 2.7 or newer"
                )
            if device not in self._libraries:
                self._libraries[device] = torch.mps.compile_shader(self.source())
            return self._libraries[device]


def assembled(path: Path) -> str:
    """The text of a Metal file of this package, with the files that it includes.

    Raises OSError if a file cannot be read.
    """
    return ("#define REPORTS\n" if REPORTS_ERRORS else "") + _expanded(path, seen=set())


def reporting(index: int) -> dict[str, int]:
    """The call option of a kernel that reports errors through buffer `index` (shared/report.metal)."""
    return {"error_buf_idx": index} if REPORTS_ERRORS else {}


def sources(path: Path) -> list[Path]:
    """The file and the files that it includes, itself first."""
    seen: set[Path] = set()
    _expanded(path, seen)
    return [path, *sorted(seen - {path})]


def _expanded(path: Path, seen: set[Path]) -> str:
    if path in seen:
        return ""
    seen.add(path)
    lines: list[str] = [f'#line 1 "{path.name}"']
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _INCLUDE.match(line)
        if match:
            lines += [_expanded(_ROOT / match["name"], seen), f'#line {number + 1} "{path.name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
