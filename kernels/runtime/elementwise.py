"""Launches the elementwise kernels of shared/elementwise.metal, in the dense form if layout and alignment allow it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import torch

from .layout import broadcast, layout_of
from .operands import FLOATING
from .outputs import check_outputs, copy_if_overlapping, refuse_internal_overlap, require_castable, shares_storage
from .shader import METAL_TYPES, Shader

_VECTOR_BYTES = 16


# Numbers passed by value as float32, or a float32 tensor that holds them on the device.
Parameters = Sequence[float] | torch.Tensor


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
    `parameters`: numbers that are passed to every element.

    Raises RuntimeError for an output of which several elements share memory, or that partly overlaps an input.
    """
    if outputs[0].numel() == 0:
        return
    for output in outputs:
        refuse_internal_overlap(output)
        if shares_storage(output, inputs):
            inputs = [copy_if_overlapping(output, source) for source in inputs]
    passed = parameters if isinstance(parameters, torch.Tensor) else [*parameters]
    launch_over(shader, name, (*outputs, *inputs), (passed,))


def launch_over(shader: Shader, name: str, operands: Sequence[torch.Tensor], constants: Sequence[object]) -> None:
    """Run NAME_dense_T or NAME_strided_T over operands of one shape; T is the first operand's dtype.

    The kernel takes the operands, the constants, then the number of elements or the layout. Checks nothing.
    """
    first = operands[0]
    elements = first.numel()
    if elements == 0:
        return
    suffix = METAL_TYPES[first.dtype]
    if is_in_vectors(operands):
        kernel = shader.kernel(f"{name}_dense_{suffix}", first.device)
        kernel(*operands, *constants, elements, threads=-(-elements * first.element_size() // _VECTOR_BYTES))
        return
    layout = layout_of(operands)
    kernel = shader.kernel(f"{name}_strided{'' if layout.fits_32_bits else '64'}_{suffix}", first.device)
    layout.launch(kernel, *operands, *constants)


def is_in_vectors(operands: Sequence[torch.Tensor]) -> bool:
    """Whether operands of one shape and dtype can be accessed 16 bytes at a time: dense, in one order, and aligned."""
    lanes, contiguous = _VECTOR_BYTES // operands[0].element_size(), True
    for operand in operands:  # loops: generators take longer than what they do here
        if operand.storage_offset() % lanes:
            return False
        contiguous = contiguous and operand.is_contiguous()
    return contiguous or layout_of(operands).is_dense


def vectors_of(x: torch.Tensor) -> int:
    """The number of 16-byte vectors that hold the elements."""
    return -(-x.numel() * x.element_size() // _VECTOR_BYTES)


def floating(
    shader: Shader,
    name: str,
    overload: Any,
    inputs: Sequence[torch.Tensor],
    arguments: Sequence[Any],
    outputs: dict[str, torch.Tensor],
    parameters: Parameters = (0.0,),
    *,
    casts: bool = True,
    integers: Collection[torch.dtype] = (),
) -> torch.Tensor:
    """Run a kernel with one output as TensorIterator does: the inputs' dtypes are promoted, the result is cast.

    `inputs`: the tensors of the computation, which broadcast to the output's shape.
    `arguments`, `outputs`: those of `overload`; its meta kernel checks them unless they obviously fit.
    `casts`: whether torch casts the result to the output's dtype. A few operators accept only their own dtype.
    `integers`: the integer dtypes, and bool, that the kernel was instantiated with; others become floats.
    Returns the output.

    Raises NotImplementedError for dtypes without kernels, RuntimeError for an output whose dtype cannot hold the
    result, and what the meta kernel raises.
    """
    (out,) = outputs.values()
    dtype = out.dtype
    computed = FLOATING.union(integers) if integers else FLOATING
    if dtype not in computed or _differ(inputs, out):
        dtype = functools.reduce(torch.promote_types, (x.dtype for x in inputs))
        if dtype not in computed and not dtype.is_floating_point and not dtype.is_complex:
            dtype = torch.get_default_dtype()
        if casts:
            require_castable(dtype, out.dtype)
        if out.shape != broadcast(*(x.shape for x in inputs)) or out.is_cpu or not (casts or out.dtype == dtype):
            check_outputs(overload, arguments, outputs, [None if casts else dtype])
        if dtype not in computed:
            raise NotImplementedError(f"{name} is not implemented for {dtype} on mps")
        inputs = [x.to(out.device, dtype).expand(out.shape) for x in inputs]
    if out.dtype == dtype:
        elementwise(shader, name, [out], inputs, parameters)
    else:
        result = torch.empty_like(out, dtype=dtype)
        elementwise(shader, name, [result], inputs, parameters)
        out.copy_(result)
    return out


def as_tensors(operands: Sequence[torch.Tensor | float], out: torch.Tensor) -> list[torch.Tensor]:
    """The operands as tensors, because a Python kernel gets an overload's scalar operand as a number.

    As everywhere in torch, a number does not widen the dtype of a floating tensor.
    """
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    if len(tensors) == len(operands):
        return tensors
    floating_dtypes = [x.dtype for x in tensors if x.is_floating_point()]
    dtype = floating_dtypes[0] if floating_dtypes else torch.get_default_dtype()
    return [x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=dtype, device=out.device) for x in operands]


def _differ(inputs: Sequence[torch.Tensor], out: torch.Tensor) -> bool:
    dtype, shape, index = out.dtype, out.shape, out.get_device()
    for x in inputs:  # loops, as above
        if x is out:
            continue
        if x.dtype != dtype or x.shape != shape or x.get_device() != index:
            return True
    return False
