"""torchvision's deformable convolution against the formula of the paper, in float64; torchvision is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith import kernels
from mpsmith.kernels.deform_conv2d import deform_conv2d as module
from mpsmith.kernels.deform_conv2d.cases import _inputs
from mpsmith.simulator import metal
from support.later_schemas import declared

from ..conftest import FreshPython

OPERATORS = ("torchvision::deform_conv2d", "torchvision::_deform_conv2d_backward")
# Offsets between the elements of the image: on them the gradient jumps, so that roundings of positions would decide.
CALLS = [(x, weight, ((offset * 8).round() + 0.5) / 8, *rest) for x, weight, offset, *rest in _inputs(torch.float32)]
DTYPES = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    metal.install()
    with declared(*OPERATORS), kernels.use(*OPERATORS) as active:
        assert active == OPERATORS
        yield


def formula(tensors: Sequence[Tensor], window: Sequence[int]) -> Tensor:
    """Equations 1 and 2 of X. Zhu et al., Deformable ConvNets v2: a sum over the window of weighted samples."""
    x, weight, offset, mask, bias = tensors
    stride, pad, dilation, (groups, offset_groups) = window[:2], window[2:4], window[4:6], window[6:]
    items, channels, height, width = x.shape
    high, wide = offset.shape[2:]
    rows, columns = torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
    result = bias[:, None, None].expand(items, -1, high, wide)
    per_group, per_offsets = channels // groups, channels // offset_groups
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            samples = []
            for channel in range(channels):
                tap = (channel // per_offsets * weight.shape[2] + i) * weight.shape[3] + j
                y = rows * stride[0] - pad[0] + i * dilation[0] + offset[:, 2 * tap]
                z = columns * stride[1] - pad[1] + j * dilation[1] + offset[:, 2 * tap + 1]
                sample = torch.zeros_like(y)
                for row, below in ((y.floor(), 1 - y % 1), (y.floor() + 1, y % 1)):
                    for column, right in ((z.floor(), 1 - z % 1), (z.floor() + 1, z % 1)):
                        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
                        here = row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()
                        values = x[(torch.arange(items)[:, None, None], channel, *here)]
                        sample = sample + torch.where(inside, below * right * values, 0)
                samples.append(sample * (mask[:, tap] if mask.dim() == 4 else 1))
            grouped = torch.stack(samples, 1).reshape(items, groups, per_group, high, wide)
            own = weight[:, :, i, j].reshape(groups, -1, per_group)
            result = result + torch.einsum("goc,ngchw->ngohw", own, grouped).flatten(1, 2)
    return result


def compare(
    tensors: Sequence[Tensor],
    window: Sequence[int],
    tolerance: float = 2e-6,
    layout: Callable[[Tensor], Tensor] = lambda x: x,
) -> None:
    """The result and all gradients, relative to the largest element of each."""
    masked = tensors[3].dim() == 4
    wide = [layout(x).double().requires_grad_() for x in tensors]
    expected = formula(wide, window)
    grad = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).to(tensors[0].dtype)
    gradients = torch.autograd.grad(expected, wide, grad.double(), allow_unused=True, materialize_grads=True)
    on_mps = [layout(x.to("mps")) for x in tensors]
    aten = torch.ops.torchvision
    output = aten.deform_conv2d(*on_mps, *window, masked)
    results = (output, *aten._deform_conv2d_backward(grad.to("mps"), *on_mps, *window, masked))
    for ours, exact in zip(results, (expected, *gradients), strict=True):
        assert ours.device.type == "mps"
        assert ours.dtype == tensors[0].dtype
        scale = float(exact.detach().abs().max()) if exact.numel() else 1.0
        torch.testing.assert_close(ours.cpu().double(), exact.detach(), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", range(len(CALLS)))
def test_values_and_gradients(call: int, dtype: torch.dtype) -> None:
    tensors, window = CALLS[call][:5], CALLS[call][5:]
    with metal.checking("checked"):
        compare([x.to(dtype) for x in tensors], window, DTYPES[dtype])


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.mT.contiguous().mT if x.dim() > 1 else x,
    "sliced": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "offset": lambda x: torch.cat([x.flatten().new_zeros(3), x.flatten()])[3:].view(x.shape),
    "expanded": lambda x: x[:1].expand(x.shape),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    compare(CALLS[1][:5], CALLS[1][5:], layout=LAYOUTS[layout])


def test_no_items() -> None:
    x, weight, offset, mask, bias, *window = CALLS[1]
    compare((x[:0], weight, offset[:0], mask[:0], bias), window)


def test_items_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    compare(CALLS[1][:5], CALLS[1][5:])


@pytest.mark.parametrize("far", [1e30, float("inf"), -7.0, -1.0, 6.0])
def test_points_outside_are_zero(far: float) -> None:
    x, weight, offset, mask, bias, *window = CALLS[0]
    result = torch.ops.torchvision.deform_conv2d(
        *(t.to("mps") for t in (x, weight, torch.full_like(offset, far), mask, bias)), *window, True
    )
    if abs(far) > 6:
        torch.testing.assert_close(result.cpu(), bias[:, None, None].expand(result.shape))
    compare((x, weight, torch.full_like(offset, far if abs(far) < 100 else 100.0), mask, bias), window)


def test_offsets_that_are_nan_give_nan() -> None:
    x, weight, offset, mask, bias, *window = CALLS[0]
    offset = offset.clone()
    offset[0, 0, 0, 0] = torch.nan
    result = torch.ops.torchvision.deform_conv2d(*(t.to("mps") for t in (x, weight, offset, mask, bias)), *window, True)
    assert result[0, :, 0, 0].cpu().isnan().all()
    assert int(result.cpu().isnan().sum()) == result.shape[1]


def changed(at: int, change: Callable[[Any], Any]) -> list[Any]:
    arguments = list(CALLS[0])
    arguments[at] = change(arguments[at])
    return arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (changed(0, lambda x: x[0]), "expected input to have 4 dimensions"),
        (changed(0, lambda x: x.double()), "not implemented for torch.float64|float64"),
        (changed(1, lambda x: x.half()), "expected weight to have dtype torch.float32"),
        (changed(1, lambda x: x[:, :3]), "do not fit"),
        (changed(2, lambda x: x[..., 1:]), "expected offset of size"),
        (changed(3, lambda x: x[:, 1:]), "expected mask of size"),
        (changed(4, lambda x: x[1:]), "expected bias of size"),
        (changed(5, lambda _: 0), "must be positive"),
        (changed(9, lambda _: 5), "calculated output size is too small"),
        (changed(12, lambda _: 4), "do not fit"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[Any], message: str) -> None:
    tensors = [x.to("mps") if x.dtype is not torch.float64 else x.float().to("mps").long() for x in arguments[:5]]
    message = message if "float64" not in message else "not implemented for torch.int64"
    with pytest.raises((RuntimeError, NotImplementedError), match=message):
        torch.ops.torchvision.deform_conv2d(*tensors, *arguments[5:], True)


def test_deterministic_algorithms_are_refused_backward() -> None:
    tensors = [x.to("mps") for x in CALLS[0][:5]]
    grad = torch.ones(2, 6, 4, 4, device="mps")
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            torch.ops.torchvision._deform_conv2d_backward(grad, *tensors, *CALLS[0][5:], True)
    finally:
        torch.use_deterministic_algorithms(False)


def test_kernels_wait_for_the_library(fresh_python: FreshPython, tmp_path: Any) -> None:
    """`import mpsmith.kernels` before torchvision, as after it: a package of that name declares the operators."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("from . import extension\n")
    (package / "extension.py").write_text(
        f"from support.later_schemas import declared\ncontext = declared(*{OPERATORS!r})\ncontext.__enter__()\n"
    )
    done = fresh_python(
        f"""
        sys.path[:0] = [{str(tmp_path)!r}, {str(__import__("support").__path__[0])!r} + "/.."]
        mine = {OPERATORS!r}
        assert "torchvision" not in sys.modules
        assert not set(mine) & set(kernels.registered())
        import torchvision
        print(*(name in kernels.registered() for name in mine))
        kernels.disable()
        print(*(name in kernels.registered() for name in mine))
        print(*(name in kernels.enable() for name in mine))
        """,
        kernels_on="installed",
    )
    assert done.stdout.split() == ["True", "True", "False", "False", "True", "True"], done.stderr
