"""Embeddings by the shipped kernels: bags in their three modes, and the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.conventions import embeddings
from mpsmith.simulator.shipped.interposed_kernel import _prepared_launch
from mpsmith.simulator.shipped.plan import KernelLaunch
from support.shipped_kernels import Shipped, assert_near, normal, on_device

pytestmark = pytest.mark.network

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
INDICES = torch.tensor([4, 0, 4, 2, 5, 5, 1, 3, 0, 2])
OFFSETS = {False: torch.tensor([0, 3, 3, 7]), True: torch.tensor([0, 3, 7, 10])}
BAG_OF_EACH = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])


def same(shipped: Shipped, function: Callable[..., Any], *arguments: Any, kernels: tuple[str, ...]) -> None:
    assert_near(shipped.run(function, *map(on_device, arguments), kernels=kernels), function(*arguments))


@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_of_embedding(shipped: Shipped, dtype: torch.dtype, index_dtype: torch.dtype) -> None:
    indices = INDICES.view(2, 5).to(index_dtype)
    grads = [normal(dtype)((2, 5, 4)), normal(dtype)((4, 5, 2)).permute(2, 1, 0)]
    for grad in grads:
        for padding in (-1, 2):
            for by_frequency in (False, True):

                def backward(grad: Tensor, indices: Tensor, p: int = padding, f: bool = by_frequency) -> Tensor:
                    return torch.ops.aten.embedding_dense_backward(grad, indices, 6, p, f)

                counting = ("embedding_dense_backward_count_*",) if by_frequency else ()
                same(shipped, backward, grad, indices, kernels=("embedding_dense_backward_*", *counting))


@pytest.mark.parametrize("last_is_end", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bags(shipped: Shipped, dtype: torch.dtype, mode: int, last_is_end: bool) -> None:
    weight, offsets = normal(dtype)((6, 5)), OFFSETS[last_is_end]
    for bag in (torch.ops.aten._embedding_bag, torch.ops.aten._embedding_bag_forward_only):

        def output(w: Tensor, indices: Tensor, offsets: Tensor, scales: Tensor | None = None, bag: Any = bag) -> Tensor:
            return bag(w, indices, offsets, False, mode, False, scales, last_is_end, 1)[0]

        same(shipped, output, weight, INDICES, offsets, kernels=("embedding_bag_*_long",))
        same(shipped, output, weight, INDICES.int(), offsets, kernels=("embedding_bag_*_long", "copy_*"))
        if mode == 0:
            same(shipped, output, weight, INDICES, offsets, normal(dtype, 4)((10,)), kernels=("embedding_bag_*_long",))


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_of_bags(shipped: Shipped, dtype: torch.dtype, mode: int) -> None:
    weight, grad, sizes = normal(dtype)((6, 5)), normal(dtype, 2)((3, 5)), torch.tensor([3, 4, 3])
    bags = [INDICES[0:3], INDICES[3:7], INDICES[7:10]]
    most = torch.stack([bag[weight[bag].argmax(0)] for bag in bags])

    def backward(grad: Tensor, indices: Tensor, bags: Tensor, sizes: Tensor, most: Tensor) -> Tensor:
        return torch.ops.aten._embedding_bag_dense_backward(grad, indices, bags, sizes, most, 6, False, mode, None, 2)

    same(shipped, backward, grad, INDICES, BAG_OF_EACH, sizes, most, kernels=("embedding_bag_backward_*",))

    def of_scales(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, bags: Tensor) -> Tensor:
        return torch.ops.aten._embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, bags, 0, 2)

    kernels = ("embedding_bag_per_sample_weights_backward_*",)
    same(shipped, of_scales, grad, weight, INDICES, OFFSETS[True], BAG_OF_EACH, kernels=kernels)


def test_an_index_out_of_range_is_reported_by_the_kernel(shipped: Shipped) -> None:
    arguments = {
        "weight": torch.zeros(6, 5),
        "indices": torch.tensor([1, 9]),
        "offsets": torch.tensor([0]),
        "mode": 0,
        "per_sample_weights": None,
        "padding_idx": -1,
    }
    call = Call("_embedding_bag", arguments, (torch.empty(1, 5),))
    (step,) = embeddings.PLANNERS["_embedding_bag"](call, shipped.library)
    assert isinstance(step, KernelLaunch)
    run = _prepared_launch(shipped.library.kernel(step.kernel), step)
    with pytest.raises(torch.AcceleratorError, match="9"):
        run()
