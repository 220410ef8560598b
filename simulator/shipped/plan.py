"""Results of planners: the launches that torch's host code makes for a call, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from torch import Tensor

from .call import Call

MAX_THREADS_OF_GROUP = 1024
"""`maxTotalThreadsPerThreadgroup` of an ordinary pipeline on every Mac that torch supports."""


class _ErrorBuffer:
    """A placeholder for the buffer through which kernels report errors."""

    def __repr__(self) -> str:
        return "ERROR_BUFFER"


ERROR_BUFFER: Final = _ErrorBuffer()
"""The value for an `error_buf` or `error_buffer` argument; errors that the kernel reports are raised."""


class Declined(Exception):  # noqa: N818  (not an error)
    """No shipped kernel computes this call; the stand-in's values are kept, marked *dispatch only*.

    The reason is counted and shown in tables, so it describes a kind of call and not one call: "no kernel for float16",
    but no shape or address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One dispatch of a shipped kernel.

    Attributes:
        kernel: its name in the release's library.
        arguments: values by the names that AIR keeps for the kernel's buffers: a tensor, a number, a list of numbers,
            a dict for a struct, or `ERROR_BUFFER`.
        threads: the grid, in threads.
        group: threads of a threadgroup.
        threadgroup_memory: bytes of each threadgroup argument.
    """

    kernel: str
    arguments: Mapping[str, object]
    threads: tuple[int, int, int]
    group: tuple[int, int, int]
    threadgroup_memory: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BlitCopy:
    """A copy by the blit encoder: both tensors are dense, with the same dtype, size and order."""

    source: Tensor
    target: Tensor


@dataclass(frozen=True, slots=True)
class BlitFill:
    """A fill of a dense tensor with `byte` by the blit encoder, for example before a kernel accumulates into it."""

    target: Tensor
    byte: int = 0


Step: TypeAlias = KernelLaunch | BlitCopy | BlitFill


class ReleaseKernels(Protocol):
    """The kernels that a release ships."""

    @property
    def release(self) -> str:
        """The PyTorch version, e.g. "2.15.0"."""

    def __contains__(self, name: str, /) -> bool: ...

    def __hash__(self) -> int: ...

    def signature(self, name: str, /) -> Any:
        """The kernel's arguments, read without compiling it (`KernelSignature`)."""


Planner: TypeAlias = Callable[[Call, ReleaseKernels], Sequence[Step]]
"""Reads shapes, strides, dtypes and numbers (never what the call writes) and returns the steps in order.

It may allocate temporaries with `torch.empty(..., device="cpu")`. It raises `Declined` if torch's host code uses
no Metal kernel, if the convention is unknown, or if the release lacks the kernel.
"""

Declared = TypeVar("Declared", bound=Planner)


def keeps_stand_in(*results: int) -> Callable[[Declared], Declared]:
    """Declare results that a Mac does not compute and that are not read: they keep the stand-in's values.

    `log_sigmoid_forward` returns a buffer that only the CPU's kernel uses.
    """

    def declare(planner: Declared) -> Declared:
        planner.keeps_stand_in = results  # type: ignore[attr-defined]
        return planner

    return declare


def required(kernels: ReleaseKernels, name: str) -> str:
    """The name of a kernel that the release has.

    Raises:
        Declined: the release has no kernel of this name.
    """
    if name not in kernels:
        raise Declined(f"no kernel {name}")
    return name


def in_line(length: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and group of a one-dimensional launch of `length` threads, as in `mtl_dispatch1DJob`."""
    return (length, 1, 1), (min(length, MAX_THREADS_OF_GROUP), 1, 1)


def in_plane(width: int, height: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and group of a two-dimensional launch: groups as wide as the grid allows, then as high as fits."""
    across = min(width, MAX_THREADS_OF_GROUP)
    return (width, height, 1), (across, min(height, MAX_THREADS_OF_GROUP // across), 1)
