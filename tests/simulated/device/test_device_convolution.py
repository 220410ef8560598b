"""The memory format of convolutions: torch.compile foresees the one that the kernels give."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._inductor import config as inductor
from torch._subclasses.fake_tensor import FakeTensorMode

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

FORMATS = (torch.contiguous_format, torch.channels_last)
functional = torch.nn.functional

CONVOLUTIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, ...]]] = {
    "plain": (functional.conv2d, (4, 3, 3, 3)),
    "pointwise": (functional.conv2d, (4, 3, 1, 1)),
    "depthwise": (lambda x, w: functional.conv2d(x, w, groups=3), (6, 1, 3, 3)),
    "transposed": (lambda x, w: functional.conv_transpose2d(x, w, stride=2), (3, 4, 3, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(("of_input", "of_weight"), list(itertools.product(FORMATS, FORMATS)))
def test_strides_are_as_foreseen(name: str, of_input: torch.memory_format, of_weight: torch.memory_format) -> None:
    call, shape = CONVOLUTIONS[name]

    def strides() -> list[tuple[int, ...]]:
        x = torch.ones(2, 3, 8, 7, device="mps").to(memory_format=of_input).requires_grad_()
        weight = torch.ones(shape, device="mps").to(memory_format=of_weight).requires_grad_()
        result = call(x, weight)
        gradients = torch.autograd.grad(result, (x, weight), torch.ones_like(result))
        return [tensor.stride() for tensor in (result, *gradients)]

    with FakeTensorMode():
        foreseen = strides()
    assert strides() == foreseen


def test_the_backend_that_torch_reports() -> None:
    x, weight = torch.ones(1, 3, 5, 5, device="mps"), torch.ones(3, 3, 2, 2, device="mps")
    places = {"bias": None, "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "output_padding": [0, 0]}

    def selected(x: Tensor, weight: Tensor, transposed: bool) -> str:
        backend = torch._C._select_conv_backend(x, weight, transposed=transposed, groups=1, bias_sizes=None, **places)
        return str(backend)

    assert selected(x, weight, False).endswith(".Mps")
    assert "MpsTranspose" in selected(x, weight, True)
    assert "Mps" not in selected(x.cpu(), weight.cpu(), False)


def network(x: Tensor, weight: Tensor, back: Tensor, line: Tensor, of_line: Tensor) -> tuple[Tensor, ...]:
    """Convolutions among operators of Inductor's own, which for inference puts them into channels_last."""
    y = functional.conv2d(x, weight).relu()
    return y, functional.conv_transpose2d(y, back, stride=2).relu(), functional.conv1d(line, of_line).sigmoid()


def test_compiled_convolutions_need_no_help() -> None:
    needs_metal_on_host()
    metal.install()
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3, 8, 7), (4, 3, 3, 3), (4, 2, 3, 3), (2, 3, 9), (4, 3, 3))
    values = [torch.randn(shape, generator=generator) for shape in shapes]
    with warnings.catch_warnings(), inductor.patch(force_disable_caches=True):
        warnings.simplefilter("ignore")
        outputs = torch.compile(network, fullgraph=True, dynamic=False)(*(value.to("mps") for value in values))
    for output, result in zip(outputs, network(*values), strict=True):
        torch.testing.assert_close(output.cpu(), result)


def test_a_mac_has_cores_enough_for_inductor_not_to_warn() -> None:
    assert torch.backends.mps.get_core_count() >= 68  # what torch._inductor.utils.is_big_gpu asks for
