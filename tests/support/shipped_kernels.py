"""Conventions are tried on the very kernels of the releases: libraries, calls that must launch, layouts, values."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.releases.wheel.errors import UnreachableError
from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.device import launch_counts
from mpsmith.simulator.shipped import interposition

RELEASES = ("2.13.0", "2.15.0")

Values = Callable[[tuple[int, ...]], Tensor]


@cache
def library_of(release: str) -> AirLibrary:
    """The library of a release, from the cache or downloaded; skips the test if neither works."""
    try:
        return AirLibrary(shipped_library(release), release)
    except UnreachableError as error:
        pytest.skip(f"torch {release}: neither cached nor to be had: {error}")


class Shipped:
    """The kernels of a release, under the device."""

    def __init__(self, library: AirLibrary) -> None:
        self.library = library
        self.release = library.release

    def run(self, function: Callable[..., Any], *arguments: Any, kernels: Sequence[str] = (), **keywords: Any) -> Any:
        """Call with tensors moved to the device; every native call in it must be answered by shipped kernels.

        `kernels` must have been launched: names, in which "*" matches anything.
        """
        launch_counts.drain()
        moved = [on_device(a) for a in arguments], {name: on_device(value) for name, value in keywords.items()}
        launch_counts.drain()
        result = function(*moved[0], **moved[1])
        drained = launch_counts.drain()
        stood_in = {name: dict(calls.stood_in) for name, calls in drained.items() if calls.stood_in}
        assert not stood_in, stood_in
        launched = {kernel for calls in drained.values() for kernel in calls.kernels}
        for wanted in kernels:
            assert fnmatch.filter(launched, wanted), f"{wanted} was not launched, but {sorted(launched)}"
        return result

    def reasons(self, function: Callable[..., Any], *arguments: Any) -> set[str]:
        """Why the stand-in answered native calls of this call."""
        moved = [on_device(a) for a in arguments]
        launch_counts.drain()
        function(*moved)
        return {reason for calls in launch_counts.drain().values() for reason in calls.stood_in}


@contextmanager
def shipped_kernels(release: str) -> Iterator[Shipped]:
    """The kernels of a release under the device."""
    library = library_of(release)
    interposition.activate(library)
    try:
        yield Shipped(library)
    finally:
        interposition.deactivate()
        launch_counts.drain()


def on_device(value: Any) -> Any:
    """A tensor on the device with the strides, the offset and the surroundings of the host's; else the value itself."""
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(item) for item in value)
    if not isinstance(value, Tensor) or value.device.type == "mps":
        return value
    surroundings = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage())
    moved = torch.empty(0, dtype=value.dtype, device="mps")
    return moved.set_(surroundings.to("mps").untyped_storage(), value.storage_offset(), value.size(), value.stride())


# Name -> a tensor made of values of whatever shape it asks for. Which kernel the host takes depends on these.
LAYOUTS: dict[str, Callable[[Values], Tensor]] = {
    "contiguous": lambda values: values((5, 7)),
    "transposed": lambda values: values((5, 7)).t(),
    "sliced": lambda values: values((5, 7))[:, 1:4],
    "long_rows": lambda values: values((4, 40))[:, 3:23],
    "offset": lambda values: values((5, 7))[2:],
    "stepped": lambda values: values((5, 8))[::2, ::3],
    "permuted": lambda values: values((3, 4, 5)).permute(2, 0, 1)[1:],
    "expanded": lambda values: values((5, 1)).expand(5, 6),
    "no_dimension": lambda values: values((3,))[1],
    "one_element": lambda values: values((1, 1)),
    "empty": lambda values: values((0, 3)),
}


def normal(dtype: torch.dtype, seed: int = 0, scale: float = 2.0) -> Values:
    """Values of a normal distribution, rounded to whatever the dtype has."""

    def values(shape: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(shape, generator=generator) * scale
        if dtype.is_complex:
            return torch.complex(drawn, torch.randn(shape, generator=generator)).to(dtype)
        if dtype == torch.bool:
            return drawn > 0
        return drawn.abs().to(dtype) if dtype == torch.uint8 else drawn.to(dtype)

    return values


# How far a result may be from the CPU's: the mathematics is the host's, the algorithms are the kernel's own.
_TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.complex64: 1e-4}


def assert_near(actual: Tensor, expected: Tensor, scale: float = 1.0) -> None:
    """Shape, dtype and values of a result on the device are the CPU's."""
    assert actual.device.type == "mps"
    tolerance = _TOLERANCE.get(expected.dtype, 0.0) * scale
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def overload_of(name: str) -> Any:
    """An overload of aten by its name, such as "add.Tensor"."""
    operator, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator), variant or "default")


def on_both(shipped: Shipped, name: str, *arguments: Any, dtype: torch.dtype = torch.float32, **keywords: Any) -> Any:
    """What an overload gives by shipped kernels, and on the host; `dtype` is that of the tensor for `out`."""
    overload = overload_of(name)
    outs = [a.name for a in overload._schema.arguments if a.kwarg_only and a.alias_info is not None]
    copies = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
    expected = overload(*copies, **keywords, **{out: torch.empty(0, dtype=dtype) for out in outs})
    empty = {out: torch.empty(0, dtype=dtype, device="mps") for out in outs}
    return shipped.run(overload, *arguments, **keywords, **empty, kernels=["*"]), expected
