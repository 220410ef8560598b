"""Fractional maximum pooling: windows where the CPU has them, for every form of the kernel and every grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpsmith.kernels.fractional_max_pool2d import fractional_max_pool2d
from mpsmith.kernels.fractional_max_pool3d import fractional_max_pool3d
from mpsmith.kernels.runtime import fractional
from mpsmith.simulator import metal

aten = torch.ops.aten
POOL = {2: aten.fractional_max_pool2d, 3: aten.fractional_max_pool3d}
SHADERS = {2: fractional_max_pool2d._shader, 3: fractional_max_pool3d._shader}

REGISTERED = ("aten::fractional_max_pool2d.output", "aten::fractional_max_pool3d.output")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are asked for."""
    names: list[str] = []
    for shader in SHADERS.values():

        def recorded(name: str, device: torch.device, kernel: Callable[..., Any] = shader.kernel) -> Any:
            names.append(name)
            return kernel(name, device)

        monkeypatch.setattr(shader, "kernel", recorded)
    return names


def same_as_the_cpu(x: torch.Tensor, sizes: list[int], outputs: list[int], samples: torch.Tensor) -> None:
    """Values and places, on a copy with the strides of `x`."""
    pool = POOL[len(sizes)]
    on_device = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="mps").copy_(x)
    for actual, expected in zip(
        pool(on_device, sizes, outputs, samples.to("mps")), pool(x, sizes, outputs, samples), strict=True
    ):
        torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0, equal_nan=True)


def samples_for(x: torch.Tensor, pooled: int) -> torch.Tensor:
    images = x.shape[0] if x.dim() == pooled + 2 else 1
    return torch.rand(images, x.shape[-pooled - 1], pooled, generator=torch.Generator().manual_seed(3))


@st.composite
def lengths(draw: st.DrawFn) -> tuple[int, int]:
    """So many inputs, and fewer outputs: the CPU wants that of volumes."""
    outputs = draw(st.integers(1, 40))
    return outputs + draw(st.integers(1, 60)), outputs


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(lengths(), min_size=2, max_size=2),
    st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=4, max_size=4),
)
@example(pairs=[(63, 8), (27, 12)], samples=[0.5] * 4)  # elsewhere by a product with the inverse of 7 or 11
def test_windows_start_where_the_cpu_has_them(pairs: list[tuple[int, int]], samples: list[float]) -> None:
    """A window of one element: its place is where the window starts."""
    inputs, outputs = [before for before, _ in pairs], [after for _, after in pairs]
    same_as_the_cpu(torch.randn(2, *inputs), [1, 1], outputs, torch.tensor(samples).view(1, 2, 2))
    volume = torch.randn(1, inputs[0], 5, inputs[1])
    same_as_the_cpu(volume, [1, 2, 1], [outputs[0], 3, outputs[1]], torch.tensor(samples[:3]).view(1, 1, 3))
    same_as_the_cpu(volume.mT.contiguous(), [1, 1, 2], [*outputs, 3], torch.tensor(samples[1:]).view(1, 1, 3))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("height", [3, 4, 9])
@pytest.mark.parametrize("pooled", [2, 3])
def test_every_form_is_right(
    pooled: int, height: int, bits: int, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row a thread and four of them, in both widths of numbers, over windows of every width."""
    if bits == 64:
        monkeypatch.setattr(fractional, "LARGEST_32_BIT", 0)
    with metal.checking("checked"):
        for window in (1, 2, 3, 5):
            x = torch.randn(2, 3, *[7] * (pooled - 2), 20, 21)
            depths = [(3, 2)][: pooled - 2]
            sizes, outputs = [d[0] for d in depths], [d[1] for d in depths]
            same_as_the_cpu(x, [*sizes, 2, window], [*outputs, height, 13], samples_for(x, pooled))
    rows, narrow = "_rows" if height >= 4 else "", "_32" if bits == 32 else ""
    assert set(launched) == {f"fractional_max_pool{pooled}d{rows}{narrow}_float"}


@pytest.mark.parametrize("pooled", [2, 3])
def test_images_at_any_distance(pooled: int) -> None:
    """Images that are further planes at one distance need no division; others, and transposed ones, do."""
    rest = [6] * pooled
    dense = torch.randn(3, 4, *rest)
    apart, swapped, single = torch.randn(5, 9, *rest)[1:4, 2:6], torch.randn(4, 3, *rest).transpose(0, 1), dense[0]
    last = dense.to(memory_format=torch.channels_last if pooled == 2 else torch.channels_last_3d)
    repeated = torch.randn(1, 4, *rest).expand(3, 4, *rest)
    for x in (dense, apart, swapped, single, last, repeated):
        shown = x if x is not repeated else x.clone()
        samples = samples_for(x, pooled)
        expected = POOL[pooled](shown.contiguous(), [2] * pooled, [4] * pooled, samples)
        actual = POOL[pooled](on_device_as(x), [2] * pooled, [4] * pooled, samples.to("mps"))
        for ours, other in zip(actual, expected, strict=True):
            assert torch.equal(ours.cpu(), other)


def on_device_as(x: torch.Tensor) -> torch.Tensor:
    """A copy on the device with the strides of `x`, expanded ones too."""
    whole = torch.empty(sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) + 1)
    view = whole.as_strided(x.shape, x.stride())
    view.copy_(x) if 0 not in x.stride() else whole.copy_(x[0].flatten())
    return whole.to("mps").as_strided(x.shape, x.stride())


def test_more_planes_than_a_launch_has_groups() -> None:
    x = torch.randn(70_000, 2, 2)
    same_as_the_cpu(x, [2, 2], [1, 1], samples_for(x, 2))
    x = torch.randn(1, 33_000, 3, 2, 2)
    same_as_the_cpu(x, [1, 1, 1], [2, 1, 1], samples_for(x, 3))


def test_the_last_nan_and_the_first_of_equal_ones() -> None:
    x = torch.randint(0, 3, (2, 30, 31)).float()
    x[0, ::4, ::3] = torch.nan
    x[1, 10:20, 10:20] = -torch.inf
    for window in (2, 3, 4):
        same_as_the_cpu(x, [window, window], [9, 14], samples_for(x, 2))
        same_as_the_cpu(x.view(1, 2, 30, 31), [1, window, window], [1, 9, 14], samples_for(x.view(1, 2, 30, 31), 3))


@pytest.mark.parametrize("pooled", [2, 3])
@pytest.mark.parametrize("sample", [15636519.0, -1.0e7, torch.inf, torch.nan])
def test_no_sample_leads_out_of_the_input(pooled: int, sample: float) -> None:
    """In float32 the third of four windows of two would start behind the nine elements; it stays at their end."""
    x = torch.randn(1, 1, *[9] * pooled)
    samples = torch.full((1, 1, pooled), sample)
    with metal.checking("checked"):
        values, places = POOL[pooled](x.to("mps"), [2] * pooled, [4] * pooled, samples.to("mps"))
    alpha = torch.tensor(7.0) / 3
    starts = ((torch.arange(3) + sample) * alpha).long() - (sample * alpha).long()
    windows = x
    for dimension in range(2, 2 + pooled):
        at = [*starts.clamp(0, 7).tolist(), 7]
        windows = torch.stack([windows.narrow(dimension, start, 2).amax(dimension) for start in at], dimension)
    assert torch.equal(values.cpu(), windows)
    assert torch.equal(x.flatten()[places.cpu().flatten()], windows.flatten())
