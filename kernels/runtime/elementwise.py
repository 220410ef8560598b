"""Launches elementwise kernels of shared/elementwise.metal: dense where layout and alignment allow it, else strided."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from .layout import Layout, layout_of
from .outputs import check_outputs, overlaps, refuse_internal_overlap
from .shader import METAL_TYPES, Shader

_VECTOR_BYTES = 16


# Numbers passed by value as float32, or a float32 tensor that holds them on the device.
Parameters = Sequence[float] | torch.Tensor

FLOATING = frozenset({torch.float32, torch.float16, torch.bfloat16})


def elementwise(
    shader: Shader,
    name: str,
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    parameters: Parameters = (0.0,),
) -> None:
    """Run `name` over tensors of one shape; the first output's dtype chooses the instantiation.

    `outputs`, `inputs`: tensors of the same shape on one device, any strides. The dtypes are those that the kernel was
        instantiated with. An input may be an output (in place); one that overlaps in another way is copied first.
    `parameters`: numbers that every element sees.

    Raises RuntimeError for an output of which several elements share memory.
    """
    first = outputs[0]
    elements = first.numel()
    if elements == 0:
        return
    for output in outputs:
        refuse_internal_overlap(output)
        inputs = [source.clone() if overlaps(output, source) else source for source in inputs]
    operands = (*outputs, *inputs)
    aligned = _is_aligned(operands, first.element_size())
    if aligned and all(operand.is_contiguous() for operand in operands):
        _launch_dense(shader, name, operands, parameters)
        return
    layout = layout_of(operands)
    if aligned and layout.is_dense:
        _launch_dense(shader, name, operands, parameters)
    else:
        _launch_strided(shader, name, operands, parameters, layout)


def _launch_dense(shader: Shader, name: str, operands: Sequence[torch.Tensor], parameters: Parameters) -> None:
    first = operands[0]
    elements = first.numel()
    kernel = shader.kernel(f"{name}_dense_{METAL_TYPES[first.dtype]}", first.device)
    threads = -(-elements * first.element_size() // _VECTOR_BYTES)
    kernel(*operands, _by_value(parameters), elements, threads=threads)


def _launch_strided(
    shader: Shader, name: str, operands: Sequence[torch.Tensor], parameters: Parameters, layout: Layout
) -> None:
    first = operands[0]
    narrow = layout.fits_32_bits
    kernel = shader.kernel(f"{name}_strided{'' if narrow else '64'}_{METAL_TYPES[first.dtype]}", first.device)
    layout.launch(kernel, *operands, _by_value(parameters))


def floating(
    shader: Shader,
    name: str,
    overload: Any,
    inputs: Sequence[torch.Tensor],
    arguments: Sequence[Any],
    outputs: dict[str, torch.Tensor],
    parameters: Parameters = (0.0,),
) -> torch.Tensor:
    """Run a kernel with one floating output, as TensorIterator would: integers become floats, the result is cast.

    `inputs`: the tensors of the computation, which broadcast to the output's shape.
    `arguments`, `outputs`: those of `overload`, for its meta kernel to check where a glance does not show that they fit.
    Returns the output.

    Raises NotImplementedError for dtypes without kernels, and what the meta kernel raises.
    """
    (out,) = outputs.values()
    dtype = out.dtype
    if dtype not in FLOATING or any(x.dtype != dtype or x.shape != out.shape for x in inputs):
        check_outputs(overload, arguments, outputs)
        dtype = functools.reduce(torch.promote_types, (x.dtype for x in inputs))
        if not dtype.is_floating_point and not dtype.is_complex:
            dtype = torch.get_default_dtype()
        if dtype not in FLOATING:
            raise NotImplementedError(f"{name} is not implemented for {dtype} on mps")
        inputs = [x.to(dtype).expand(out.shape) for x in inputs]
    if out.dtype == dtype:
        elementwise(shader, name, [out], inputs, parameters)
    else:
        result = torch.empty_like(out, dtype=dtype)
        elementwise(shader, name, [result], inputs, parameters)
        out.copy_(result)
    return out


def _by_value(parameters: Parameters) -> list[float] | torch.Tensor:
    return parameters if isinstance(parameters, torch.Tensor) else list(parameters)


def _is_aligned(operands: Sequence[torch.Tensor], width: int) -> bool:
    """Whether vectors of 16 bytes of the first operand, and as many elements of the others, start at their multiples."""
    lanes = _VECTOR_BYTES // width
    return all(operand.storage_offset() % lanes == 0 for operand in operands)
