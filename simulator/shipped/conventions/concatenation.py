"""`cat`: one launch for each input, or the blit encoder's copies if inputs are copied as contiguous blocks.

Source: `cat_out_mps` of aten/src/ATen/native/mps/operations/Shape.mm (main, 2026) and `cat` of the shared
TensorShape.cpp; kernels `cat_{int32_t,int64_t}_INPUT_OUTPUT` are the same in 2.13.0 and 2.15.0. 64-bit indices are for
tensors of more than 2^31 elements, which this convention leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import BlitCopy, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .layouts import wrapped
from .metal_types import metal_name
from .operands import fits_32_bits

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _cat(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    output = call.result
    inputs = [tensor for tensor in call["tensors"] if tensor.numel() or tensor.dim() != 1]
    dim = wrapped(call["dim"], output.dim())
    if not fits_32_bits(output, *inputs):
        raise Declined("offsets of more than 32 bits")
    if dim == 0 and _can_copy_blocks(inputs, output):
        return _blits(inputs, output)
    shared = {
        "ndim": output.dim(),
        "cat_dim": dim,
        "output_strides": list(output.stride()),
        "output_sizes": list(output.shape),
    }
    steps: list[Step] = []
    at = 0
    for tensor in inputs:
        own = {
            "cat_dim_offset": at,
            "input_element_offset": 0,
            "input_strides": list(tensor.stride()),
            "input_sizes": list(tensor.shape),
        }
        at += tensor.size(dim)
        if tensor.numel():
            name = required(kernels, f"cat_int32_t_{metal_name(tensor.dtype)}_{metal_name(output.dtype)}")
            arguments = {"input": tensor, "output": output, "shared_params": shared, "input_params": own}
            steps.append(KernelLaunch(name, arguments, *in_line(tensor.numel())))
    return steps


def _can_copy_blocks(inputs: Sequence[Tensor], output: Tensor) -> bool:
    """Whether all tensors are contiguous and of one dtype, and some input is not channels_last."""
    plain = [*inputs, output]
    return all(tensor.dtype == output.dtype and tensor.is_contiguous() for tensor in plain) and not all(
        _is_suggested_channels_last(tensor) for tensor in inputs
    )


def _is_suggested_channels_last(tensor: Tensor) -> bool:
    last = _FORMATS.get(tensor.dim())
    return last is not None and tensor.is_contiguous(memory_format=last) and not tensor.is_contiguous()


def _blits(inputs: Sequence[Tensor], output: Tensor) -> list[Step]:
    steps: list[Step] = []
    at = 0
    for tensor in inputs:
        rows = tensor.size(0)
        if tensor.numel():
            steps.append(BlitCopy(tensor, output.narrow(0, at, rows)))
        at += rows
    return steps


PLANNERS: dict[str, Planner] = dict.fromkeys(("cat", "cat.out"), _cat)
