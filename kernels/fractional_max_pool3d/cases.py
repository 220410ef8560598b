"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values
from ..verification.workload import Workload, volume


def _volumes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for window, size in (((2, 2, 2), (3, 4, 2)), ((3, 2, 1), (2, 5, 6)), ((4, 4, 4), (1, 1, 1))):
        samples = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(5)).to(dtype)
        yield values((2, 3, 6, 9, 7), dtype), window, size, samples
    yield values((3, 6, 9, 7), dtype), (2, 3, 2), (3, 4, 2), samples[:1]


def _fractional(x: torch.Tensor, window: Any, size: Any, samples: torch.Tensor) -> Any:
    return torch.nn.functional.fractional_max_pool3d(x, window, size, return_indices=True, _random_samples=samples)


def _backward_to(dy: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    gradient = torch.empty(0, dtype=x.dtype, device=x.device)
    overload = torch.ops.aten.fractional_max_pool3d_backward.grad_input
    indices = indices.contiguous()  # the CPU reads them as if they were, whatever their strides are
    return overload(dy, x, (2, 2, 2), dy.shape[-3:], indices, grad_input=gradient)  # type: ignore[no-any-return]


def _gradients(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for x, window, size, samples in _volumes(dtype):
        if window == (2, 2, 2):
            y, indices = torch.ops.aten.fractional_max_pool3d(x.float(), window, size, samples.float())
            yield y.to(dtype), x, indices


CASES = (
    KernelCall(
        "nn.functional.fractional_max_pool3d",
        ("aten::fractional_max_pool3d", "aten::fractional_max_pool3d_backward"),
        _fractional,
        _volumes,
        gradients=(0,),
    ),
    KernelCall(
        "fractional_max_pool3d_backward",
        ("aten::fractional_max_pool3d_backward",),
        _backward_to,
        _gradients,
        variant="grad_input",
        expands=False,
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Wrong samples, gradients and positions of maxima."""
    aten = torch.ops.aten
    x, window, size = values((2, 3, 6, 6, 6), torch.float32), [2, 2, 2], [3, 3, 3]
    for title, samples in (
        ("samples of one volume for two", torch.zeros(1, 3, 3)),
        ("samples of two dimensions", torch.zeros(2, 3, 2)),
        ("samples of volumes in half", torch.zeros(2, 3, 3).half()),
    ):
        yield RefusedCall(title, aten.fractional_max_pool3d, (x, window, size, samples))
    y, places = aten.fractional_max_pool3d(x, window, size, torch.zeros(2, 3, 3))
    for title, gradient, indices in (
        ("fractional int32 places in volumes", y, places.int()),
        ("gradient of another depth", y[:, :, :2], places),
    ):
        yield RefusedCall(title, aten.fractional_max_pool3d_backward, (gradient, x, window, size, indices))


def _volume(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A volume with 16 channels, and the random samples for its windows."""
    return *volume(elements), torch.rand(1, 16, 3)


def _half_size(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    size = tuple(side // 2 for side in x.shape[-3:])
    return torch.nn.functional.fractional_max_pool3d(x, 2, size, _random_samples=samples)


WORKLOAD = Workload("aten::fractional_max_pool3d.output", _half_size, _volume)
