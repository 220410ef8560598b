"""Operators that torch's shared host code builds from others on every device, so that no kernel has their name.

Source: aten/src/ATen/native/{TensorTransformations,TensorCompare,EmbeddingBag,Repeat}.cpp (main, 2026).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .composition import inner
from .copies import copied


def _roll(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Two slices of a dimension in reverse order, joined by `cat`; several dimensions one after the other."""
    source, result, shifts, dims = call["self"], call.result, list(call["shifts"]), list(call["dims"])
    if not dims:
        if not result.is_contiguous():
            raise Declined("a result that is not contiguous")
        return _rolled(kernels, source.contiguous().view(-1), result.view(-1), shifts[0], 0)
    steps: list[Step] = []
    for at, (shift, dim) in enumerate(zip(shifts, dims, strict=True)):
        target = result if at == len(dims) - 1 else result.new_empty(result.shape)
        steps += _rolled(kernels, source, target, shift, dim)
        source = target
    return steps


def _rolled(kernels: ReleaseKernels, source: Tensor, target: Tensor, shift: int, dim: int) -> list[Step]:
    if source.dim() == 0:
        return [copied(kernels, target, source)]
    size = source.size(dim)
    start = -shift % size
    halves = [source.narrow(dim, start, size - start), source.narrow(dim, 0, start)]
    return inner(kernels, "cat", target, tensors=halves, dim=dim)


def _isin_number(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`isin` with one number, which is a comparison."""
    comparison = "ne.Scalar" if call["invert"] else "eq.Scalar"
    return inner(kernels, comparison, call.result, self=call["elements"], other=call["test_element"])


def _embedding_bag_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    if call["sparse"]:
        raise Declined("sparse gradients")
    if call["offset2bag"].numel() != call["indices"].numel():
        raise Declined("notes of the forward pass in the CPU's form")
    arguments = {name: value for name, value in call.arguments.items() if name not in ("offsets", "sparse")}
    return inner(kernels, "_embedding_bag_dense_backward", call.result, **arguments)


def _repeat_interleave(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Each index repeated: one thread an index, which writes from the cumulative sum of the repeats before it."""
    repeats, result = call["repeats"], call.result
    ends = torch.empty(repeats.shape, dtype=torch.int64, device="cpu")
    kernel = required(kernels, f"repeat_interleave_{'int32_t' if repeats.dtype == torch.int32 else 'int64_t'}")
    arguments = {"repeat_ptr": repeats, "cumsum_ptr": ends, "result_ptr": result, "repeat_stride": repeats.stride(0)}
    sums = inner(kernels, "cumsum", ends, self=repeats, dim=0)
    return [*sums, KernelLaunch(kernel, arguments, *in_line(repeats.numel()))]


PLANNERS: dict[str, Planner] = {
    "roll": _roll,
    **dict.fromkeys(("isin.Tensor_Scalar", "isin.Tensor_Scalar_out"), _isin_number),
    "_embedding_bag_backward": _embedding_bag_backward,
    "repeat_interleave.Tensor": _repeat_interleave,
}
