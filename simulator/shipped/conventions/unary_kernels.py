"""`exec_unary_kernel`: the host function behind every elementwise operator of one tensor.

Source: aten/src/ATen/native/mps/OperationUtils.mm (main, late 2026); the names and arguments of the kernels agree with
2.13.0 and 2.15.0. The kernels of operator NAME, output type O and input type I are

    NAME_dense_scalar_O_I              contiguous, one element a thread
    NAME_dense_O_I                     contiguous and at least 2^18 elements of floating point, four a thread
    NAME_strided_O_I                   anything else
    NAME_inner_contiguous_O_I          anything else whose innermost run is dense and at least 16 long (2.15.0)
    NAME_{dense,dense_castout_ilp,strided,inner_contiguous}_castout_I
                                       if no kernel has O: it computes in I and converts when it stores

With a parameter ("alpha", of type A) they are NAME_dense_O_I_A, one a thread, NAME_dense_ilp_O_I_A, four a thread
(2.15.0), NAME_strided_O_I_A and NAME_inner_contiguous_O_I_A (2.15.0), and none converts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from ..iterator import Geometry, geometry_of
from ..plan import Declined, KernelLaunch, ReleaseKernels, in_line, in_plane, required
from .metal_types import metal_name, scalar_type

PER_THREAD = 4
"""Elements that a thread of a kernel with instruction-level parallelism works on (`ILP_PER_THREAD`)."""
PARALLEL_FROM = 1 << 18
"""Elements from which on the host takes such a kernel for floating point."""

Layout: TypeAlias = tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]
"""What choosing a kernel needs of a tensor: dtype, sizes, strides."""


@dataclass(frozen=True, slots=True)
class FunctorParameter:
    """The parameter of a kernel, and the type that its name ends in: `float`, `long`, `ELUParams_float`."""

    value: object
    type_name: str


@dataclass(frozen=True, slots=True)
class Form:
    """The chosen kernel, with all arguments that do not depend on the tensors' memory."""

    kernel: str
    arguments: Mapping[str, object]
    threads: tuple[int, int, int]
    group: tuple[int, int, int]


def layout(tensor: Tensor) -> Layout:
    """The layout of a tensor."""
    return tensor.dtype, tuple(tensor.shape), tensor.stride()


def unary(
    kernels: ReleaseKernels,
    name: str,
    output: Tensor,
    source: Tensor,
    parameter: FunctorParameter | None = None,
    parallel_from: int | None = None,
) -> KernelLaunch:
    """The launch of an operator over one tensor.

    `parallel_from`: from this number of elements on, a thread computes four of them, whatever the dtype.

    Raises:
        Declined: the release has no kernel for these dtypes.
    """
    type_name = parameter.type_name if parameter else ""
    form = _form(kernels, name, layout(output), layout(source), type_name, parallel_from)
    arguments = {"output": output, "input": source, **form.arguments}
    if parameter:
        arguments["alpha"] = parameter.value
    return KernelLaunch(form.kernel, arguments, form.threads, form.group)


@functools.lru_cache(maxsize=8192)
def _form(
    kernels: ReleaseKernels, name: str, output: Layout, source: Layout, parameter: str, parallel_from: int | None
) -> Form:
    walk = geometry_of(((output[1], output[2], output[0].itemsize), (source[1], source[2], source[0].itemsize)))
    if not walk.fits_32_bits:
        raise Declined("offsets of more than 32 bits")
    types = f"{metal_name(output[0])}_{metal_name(source[0])}"
    if parameter:
        return _with_parameter(kernels, name, walk, f"{types}_{parameter}", output[0])
    if walk.contiguous:
        eligible = output[0].is_floating_point or parallel_from is not None
        if eligible and walk.numel >= (PARALLEL_FROM if parallel_from is None else parallel_from):
            direct = f"{name}_dense_{types}"
            if direct in kernels:
                return Form(direct, {"numel": walk.numel}, *in_line(-(-walk.numel // PER_THREAD)))
        else:
            direct = f"{name}_dense_scalar_{types}"
            if direct in kernels:
                return Form(direct, {}, *in_line(walk.numel))
    else:
        inner = f"{name}_inner_contiguous_{types}"
        if walk.prefers_inner_contiguous and inner in kernels:
            return Form(inner, *_inner_runs(walk, [len(walk.shape) - 1, walk.shape[0]]))
        direct = f"{name}_strided_{types}"
        if direct in kernels and not _has_inner_castout(kernels, name, walk, source[0]):
            return Form(direct, *_strided(walk, {"ndim": len(walk.shape)}))
    return _converting(kernels, name, walk, output[0], source[0], parallel_from)


def _has_inner_castout(kernels: ReleaseKernels, name: str, walk: Geometry, dtype: torch.dtype) -> bool:
    """Whether the host uses an inner contiguous kernel that converts, if none writes the output's type directly."""
    castout = f"{name}_inner_contiguous_castout_{metal_name(dtype)}"
    return walk.prefers_inner_contiguous and castout in kernels


def _with_parameter(kernels: ReleaseKernels, name: str, walk: Geometry, types: str, output: torch.dtype) -> Form:
    if walk.contiguous:
        several = f"{name}_dense_ilp_{types}"
        if output.is_floating_point and walk.numel >= PARALLEL_FROM and several in kernels:
            return Form(several, {"numel": walk.numel}, *in_line(-(-walk.numel // PER_THREAD)))
        return Form(required(kernels, f"{name}_dense_{types}"), {}, *in_line(walk.numel))
    inner = f"{name}_inner_contiguous_{types}"
    if walk.prefers_inner_contiguous and inner in kernels:
        return Form(inner, *_inner_runs(walk, [len(walk.shape) - 1, walk.shape[0]]))
    return Form(required(kernels, f"{name}_strided_{types}"), *_strided(walk, {"ndim": len(walk.shape)}))


def _converting(
    kernels: ReleaseKernels,
    name: str,
    walk: Geometry,
    output: torch.dtype,
    source: torch.dtype,
    parallel_from: int | None,
) -> Form:
    """A kernel that computes in the input's type and stores in the output's, which it gets as a number."""
    size, number, dimensions = output.itemsize, scalar_type(output), len(walk.shape)
    if walk.contiguous:
        if parallel_from is not None and walk.numel >= parallel_from:
            kernel = required(kernels, f"{name}_dense_castout_ilp_{metal_name(source)}")
            numbers: dict[str, object] = {"size_outtype_numel": [size, number, walk.numel]}
            return Form(kernel, numbers, *in_line(-(-walk.numel // PER_THREAD)))
        kernel = required(kernels, f"{name}_dense_castout_{metal_name(source)}")
        return Form(kernel, {"size_outtype": [size, number]}, *in_line(walk.numel))
    if _has_inner_castout(kernels, name, walk, source):
        kernel = f"{name}_inner_contiguous_castout_{metal_name(source)}"
        arguments, threads, group = _inner_runs(walk, [])
        del arguments["ndim_outer_inner"]
        arguments["ndimO_inner_elem_outtype"] = [dimensions - 1, walk.shape[0], size, number]
        return Form(kernel, arguments, threads, group)
    kernel = required(kernels, f"{name}_strided_castout_{metal_name(source)}")
    return Form(kernel, *_strided(walk, {"ndim_outtype": [dimensions, number]}))


Grid: TypeAlias = tuple[int, int, int]


def _strided(walk: Geometry, more: Mapping[str, object]) -> tuple[dict[str, object], Grid, Grid]:
    output, source = walk.strides
    arguments = {"sizes": list(walk.shape), "input_strides": list(source), "output_strides": list(output), **more}
    return arguments, *in_plane(walk.shape[0], walk.outer)


def _inner_runs(walk: Geometry, dimensions_and_run: list[int]) -> tuple[dict[str, object], Grid, Grid]:
    output, source = walk.strides
    arguments: dict[str, object] = {
        "outer_sizes": list(walk.shape[1:]),
        "input_outer_strides": list(source[1:]),
        "output_outer_strides": list(output[1:]),
        "ndim_outer_inner": dimensions_and_run,
    }
    return arguments, *in_plane(-(-walk.shape[0] // PER_THREAD), walk.outer)
