"""`exec_binary_kernel`: the host function behind every elementwise operator of two tensors.

Source: aten/src/ATen/native/mps/OperationUtils.mm (main, late 2026); the names and arguments of the kernels agree with
2.13.0 and 2.15.0. The kernels of operator NAME, with output type O and operand type I, are

    NAME_dense_scalar[_lhs]_O_I        one operand has one element, the other and the result are contiguous
    NAME_dense_broadcast[_rhs]_O_I     one operand is repeated as a whole over the result, all are contiguous
    NAME_dense_O_I, NAME_dense_ilp4_O_I    all lie in one order; the second from 2^18 elements of floating point on
    NAME_inner_contiguous_O_I          anything else whose innermost run is dense and at least 16 long (2.15.0)
    NAME_strided_O_I                   anything else

with `_cast_O_C` at the end if the operands differ in type: each is read in its own type, and the kernel computes in C,
which is O, or the operands' common type if O is bool. A result of a type that the kernels do not write (eq with an
`out` of integers) takes NAME_strided_castout_O_C in any layout. With a parameter ("alpha"), the name ends in its
type, and no form takes several elements a thread.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ..iterator import Geometry, geometry_of
from ..plan import Declined, KernelLaunch, ReleaseKernels, in_line, in_plane, required
from .metal_types import as_bytes, is_integral, metal_name, scalar_type
from .unary_kernels import PARALLEL_FROM, PER_THREAD, FunctorParameter, Layout, layout

Operand: TypeAlias = "Tensor | bool | int | float | complex"

_OF_NUMBER = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}
_FOR_DEVICE = {torch.float64: torch.float32, torch.complex128: torch.complex64}


@dataclass(frozen=True, slots=True)
class PairForm:
    """The chosen kernel, its arguments except tensors, and its names for the output and the two operands."""

    kernel: str
    arguments: Mapping[str, object]
    threads: tuple[int, int, int]
    group: tuple[int, int, int]
    output: str = "out"
    operands: tuple[str, str] = ("input", "other")
    converted: torch.dtype | None = None  # the host converts the scalar operand to this beforehand


def binary(
    kernels: ReleaseKernels,
    name: str,
    output: Tensor,
    left: Operand,
    right: Operand,
    parameter: FunctorParameter | None = None,
    *,
    common: torch.dtype | None = None,
    natural: torch.dtype | None = None,
) -> KernelLaunch:
    """The launch of an operator over two operands, one of which may be a number.

    `common`: the operands' common type, if it differs from type promotion's. `natural`: the result type of the kernels,
    if it differs from the output's.

    Raises:
        Declined: the release has no kernel for these dtypes.
    """
    if common is None:
        common = torch.result_type(left, right)
    common = _FOR_DEVICE.get(common, common)
    operands = _tensor(left), _tensor(right)
    type_name = parameter.type_name if parameter else ""
    layouts = layout(output), layout(operands[0]), layout(operands[1])
    form = _form(kernels, name, *layouts, common, natural or output.dtype, type_name)
    if form.converted is not None:
        operands = operands[0].to(form.converted), operands[1].to(form.converted)
    arguments = {form.output: output, **dict(zip(form.operands, operands, strict=True)), **form.arguments}
    if "scalar" in arguments and "sizes_types" in arguments:
        arguments["scalar"] = as_bytes(operands[form.operands.index("scalar")])
    if parameter:
        arguments["alpha"] = parameter.value
    return KernelLaunch(form.kernel, arguments, form.threads, form.group)


def parameter_of(value: Any, dtype: torch.dtype) -> FunctorParameter:
    """A number as the parameter of a kernel, in `dtype` (`getMPSScalar`)."""
    if dtype.is_complex:
        number = complex(value)
        return FunctorParameter([number.real, number.imag], metal_name(dtype))
    return FunctorParameter(real_number(value, dtype), metal_name(dtype))


def real_number(value: Any, dtype: torch.dtype) -> bool | int | float:
    """A number in a real dtype, converted like `Scalar::to`: a negative number wraps around in an unsigned type."""
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        return float(value)
    return int(value) if dtype.is_signed else int(value) % (1 << 8 * dtype.itemsize)


def _tensor(operand: Operand) -> Tensor:
    """An operand in the form that the host binds: a double scalar becomes a float, because Metal has no double."""
    if isinstance(operand, Tensor):
        narrower = _FOR_DEVICE.get(operand.dtype)
        return operand.to(narrower) if narrower is not None and operand.dim() == 0 else operand
    return torch.scalar_tensor(operand, dtype=_OF_NUMBER[type(operand)], device="cpu")


@functools.lru_cache(maxsize=8192)
def _form(
    kernels: ReleaseKernels,
    name: str,
    output: Layout,
    left: Layout,
    right: Layout,
    common: torch.dtype,
    natural: torch.dtype,
    parameter: str,
) -> PairForm:
    walk = geometry_of(tuple((sizes, strides, dtype.itemsize) for dtype, sizes, strides in (output, left, right)))
    if not walk.fits_32_bits:
        raise Declined("offsets of more than 32 bits")
    end = f"_{parameter}" if parameter else ""
    types = [scalar_type(dtype) for dtype, _, _ in (left, right)]
    if output[0] != natural:
        kernel = required(kernels, f"{name}_strided_castout_{metal_name(natural)}_{metal_name(common)}{end}")
        ndim_types = [len(walk.shape), *types, scalar_type(output[0])]
        return _strided(kernel, walk, {"ndim_types": ndim_types})
    casts = left[0] != right[0]
    repeated = _repeated(output, left, right)
    if repeated:
        whole, part = (right, left) if repeated.on_left else (left, right)
        if casts and repeated.is_scalar and _converts_on_host(whole[0], part[0], common):
            casts, converted = False, common
        else:
            converted = None
        read = (_cast_suffix(output[0], common) if casts else f"{metal_name(output[0])}_{metal_name(whole[0])}") + end
        kernel = required(kernels, f"{name}_{repeated.form}{'_cast' if casts else ''}_{read}")
        arguments: dict[str, object] = {} if repeated.is_scalar else {"broadcast_numel": repeated.numel}
        if casts:
            arguments["sizes_types"] = [left[0].itemsize, right[0].itemsize, *types]
        return PairForm(kernel, arguments, *in_line(walk.numel), operands=repeated.names, converted=converted)
    if casts:
        return _casting(kernels, name, walk, output[0], left[0], right[0], common, end)
    read = f"{metal_name(output[0])}_{metal_name(left[0])}{end}"
    if walk.contiguous:
        several = f"{name}_dense_ilp4_{read}"
        if output[0].is_floating_point and walk.numel >= PARALLEL_FROM and several in kernels:
            return PairForm(several, {"numel": walk.numel}, *in_line(-(-walk.numel // PER_THREAD)))
        return PairForm(required(kernels, f"{name}_dense_{read}"), {}, *in_line(walk.numel))
    inner = f"{name}_inner_contiguous_{read}"
    if walk.prefers_inner_contiguous and inner in kernels:
        return _inner_runs(inner, walk)
    kernel = required(kernels, f"{name}_strided_{read}")
    return _strided(kernel, walk, {"ndim": [len(walk.shape), *types]})


def _cast_suffix(output: torch.dtype, common: torch.dtype) -> str:
    return f"{metal_name(output)}_{metal_name(common if output == torch.bool else output)}"


def _converts_on_host(tensor: torch.dtype, scalar: torch.dtype, common: torch.dtype) -> bool:
    """Whether the host converts an integer scalar to float before it binds it."""
    real = torch.float32 if common == torch.complex64 else common
    return tensor == common and is_integral(scalar) and real == torch.float32


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Which operand is repeated as a whole over the result."""

    on_left: bool
    numel: int

    @property
    def is_scalar(self) -> bool:
        return self.numel == 1

    @property
    def form(self) -> str:
        if self.is_scalar:
            return "dense_scalar_lhs" if self.on_left else "dense_scalar"
        return "dense_broadcast_rhs" if self.on_left else "dense_broadcast"

    @property
    def names(self) -> tuple[str, str]:
        part = "scalar" if self.is_scalar else "broadcast"
        return (part, "input") if self.on_left else ("input", part)


def _repeated(output: Layout, left: Layout, right: Layout) -> _Repeated | None:
    numel = _numel(output)
    if not _is_contiguous(output):
        return None
    for on_left, part, whole in ((True, left, right), (False, right, left)):
        fits = _numel(part) != numel and _is_contiguous(part) and repeats_over(part[1], output[1])
        if fits and _numel(whole) == numel and _is_contiguous(whole):
            return _Repeated(on_left, _numel(part))
    return None


def repeats_over(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether broadcasting shape `part` to `whole` repeats it as a whole: only leading dimensions are broadcast."""
    inner_differs = False
    for own, full in zip(reversed(part), reversed(whole), strict=False):
        if inner_differs:
            if own != 1:
                return False
        else:
            inner_differs = own != full
    return True


def _numel(tensor: Layout) -> int:
    numel = 1
    for size in tensor[1]:
        numel *= size
    return numel


def _is_contiguous(tensor: Layout) -> bool:
    expected = 1
    for size, stride in zip(reversed(tensor[1]), reversed(tensor[2]), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _casting(
    kernels: ReleaseKernels,
    name: str,
    walk: Geometry,
    output: torch.dtype,
    left: torch.dtype,
    right: torch.dtype,
    common: torch.dtype,
    end: str,
) -> PairForm:
    """A kernel that reads each operand in its own type."""
    types = [scalar_type(left), scalar_type(right)]
    suffix = _cast_suffix(output, common) + end
    if walk.contiguous:
        sizes_types = [left.itemsize, right.itemsize, *types]
        kernel = required(kernels, f"{name}_dense_cast_{suffix}")
        return PairForm(kernel, {"sizes_types": sizes_types}, *in_line(walk.numel))
    kernel = required(kernels, f"{name}_strided_cast_{suffix}")
    return _strided(kernel, walk, {"ndim_types": [len(walk.shape), *types, scalar_type(output)]})


def _strided(kernel: str, walk: Geometry, more: Mapping[str, object]) -> PairForm:
    output, left, right = (list(strides) for strides in walk.strides)
    arguments: dict[str, object] = {
        "sizes": list(walk.shape) or [1],
        "output_strides": output or [0],
        "input_strides": left or [0],
        "other_strides": right or [0],
        **more,
    }
    return PairForm(kernel, arguments, *in_line(walk.numel), output="output")


def _inner_runs(kernel: str, walk: Geometry) -> PairForm:
    output, left, right = (list(strides[1:]) for strides in walk.strides)
    arguments: dict[str, object] = {
        "outer_sizes": list(walk.shape[1:]),
        "output_outer_strides": output,
        "input_outer_strides": left,
        "other_outer_strides": right,
        "ndim_outer_inner": [len(walk.shape) - 1, walk.shape[0]],
    }
    threads, group = in_plane(-(-walk.shape[0] // PER_THREAD), walk.outer)
    return PairForm(kernel, arguments, threads, group, output="output")
