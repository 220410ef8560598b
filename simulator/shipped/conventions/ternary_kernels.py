"""`exec_ternary_kernel`: the host function behind elementwise operators of three tensors.

Source: aten/src/ATen/native/mps/OperationUtils.mm (main, late 2026), whose forms are those of 2.13.0 and 2.15.0:
NAME_{dense,strided}_O_I if the operands and the result have one type (for `where` I is that of its condition), and
NAME_{dense,strided}_cast_O if they differ. A parameter's type ends the name. In 2.15.0 the grid of a strided kernel has
three dimensions, in 2.13.0 one, as its signature says.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import torch
from torch import Tensor

from ..iterator import Geometry, geometry_of
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, ReleaseKernels, in_line, required
from .metal_types import as_bytes, metal_name, scalar_type
from .unary_kernels import Form, FunctorParameter, Layout, layout

Grid: TypeAlias = tuple[int, int, int]


def ternary(
    kernels: ReleaseKernels,
    name: str,
    output: Tensor,
    operands: Sequence[Tensor],
    parameter: FunctorParameter | None = None,
    *,
    converts: bool = True,
) -> KernelLaunch:
    """The launch of an operator over three operands. `converts`: whether different types need a cast kernel.

    Raises:
        Declined: the release has no kernel for these dtypes.
    """
    type_name = parameter.type_name if parameter else ""
    form = _form(kernels, name, layout(output), tuple(map(layout, operands)), type_name, converts)
    strided = "output_strides" in form.arguments
    casts = "types" in form.arguments
    first, second, third = map(as_bytes, operands) if casts and strided else operands
    arguments: dict[str, object] = {
        "output" if strided else "out": output,
        "input": first,
        "other1": second,
        "other2": third,
    }
    arguments.update(form.arguments)
    if parameter:
        arguments["alpha"] = parameter.value
    return KernelLaunch(form.kernel, arguments, form.threads, form.group)


@functools.lru_cache(maxsize=4096)
def _form(
    kernels: ReleaseKernels, name: str, output: Layout, operands: tuple[Layout, ...], parameter: str, converts: bool
) -> Form:
    walk = geometry_of(tuple((sizes, strides, dtype.itemsize) for dtype, sizes, strides in (output, *operands)))
    if not walk.fits_32_bits:
        raise Declined("offsets of more than 32 bits")
    dtypes = [dtype for dtype, _, _ in operands]
    casts = converts and any(dtype != output[0] for dtype in dtypes)
    own = f"cast_{metal_name(output[0])}" if casts else f"{metal_name(output[0])}_{metal_name(dtypes[0])}"
    types = [scalar_type(dtype) for dtype in dtypes]
    end = f"_{parameter}" if parameter else ""
    if walk.contiguous:
        kernel = required(kernels, f"{name}_dense_{own}{end}")
        sizes = {"sizes": _filled(kernels, kernel, "sizes", [dtype.itemsize for dtype in dtypes], output[0].itemsize)}
        sizes["types"] = _filled(kernels, kernel, "types", types, scalar_type(output[0]))
        return Form(kernel, sizes if casts else {}, *in_line(walk.numel))
    kernel = required(kernels, f"{name}_strided_{own}{end}")
    arguments: dict[str, object] = {
        "sizes": list(walk.shape),
        **{
            f"{operand}_strides": list(strides)
            for operand, strides in zip(("output", "input", "other1", "other2"), walk.strides, strict=True)
        },
        "ndim": len(walk.shape),
    }
    if casts:
        arguments["types"] = [*types, scalar_type(output[0])]
    return Form(kernel, arguments, *_grid(kernels, kernel, walk))


def _filled(kernels: ReleaseKernels, kernel: str, name: str, of_operands: list[int], of_output: int) -> list[int]:
    """A value for each operand; one more for the result if the argument of the release's kernel has four."""
    argument = kernels.signature(kernel).buffer(name)
    return [*of_operands, of_output] if argument is not None and argument.type_name.endswith("4") else of_operands


def _grid(kernels: ReleaseKernels, kernel: str, walk: Geometry) -> tuple[Grid, Grid]:
    position = next(b for b in kernels.signature(kernel).builtins if b.kind == "thread_position_in_grid")
    if position.type_name != "uint3":
        return in_line(walk.numel)
    width, height, *rest = (*walk.shape, 1)
    across = min(width, MAX_THREADS_OF_GROUP)
    down = min(height, MAX_THREADS_OF_GROUP // across)
    return (width, height, prod(rest)), (across, down, 1)


def of_one_dtype(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors have the same dtype."""
    return len({tensor.dtype for tensor in tensors}) == 1


def scalar_tensor(value: object, dtype: torch.dtype) -> Tensor:
    """A number as a 0-dim tensor."""
    return torch.scalar_tensor(value, dtype=dtype, device="cpu")  # type: ignore[arg-type]
