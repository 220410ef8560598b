"""Reductions of values: which kernels reduce an input to an output, in the two designs that releases ship.

An operator `sum_` has a kernel for any layout, `sum_reduction_IN_OUT`, and faster ones for common layouts. 2.13.0 has
them for the outermost and the innermost dimension of a dense tensor, and for long reductions to one element. 2.14 and
2.15 treat the input as [outer, dim, inner] with `dim` reduced, and have a kernel for each case of that.

The host code is `reduction_dispatch_mps` of aten/src/ATen/native/mps/operations/ReduceOps.mm; the sizes are those of
aten/src/ATen/native/mps/kernels/ReduceOps.h. Both are of mid and late 2026, not of a release's tag. So the number of
groups of a long reduction may differ, and with it the last bits of a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..plan import MAX_THREADS_OF_GROUP, KernelLaunch, ReleaseKernels, Step, required
from .layouts import in_order_of_memory
from .reduction_layouts import LayoutPlan, layout_plan

_WHOLE_SIMD_GROUP = 32
_ELEMENTS_PER_THREAD = 8
_MOST_GROUPS = 512
_INNER_GROUP = 256
_OUTER_GROUP = 32
_FLAT_GROUP = 256
_NARROW_GROUP = 256


@dataclass(frozen=True, slots=True)
class ReductionOp:
    """The names of a reduction's kernels, and their parameter.

    Attributes:
        prefix: the prefix of the names, "sum_".
        input_type: of the elements, as in names of kernels.
        output_type: of the result.
        partial_type: of the partial results of a reduction in two passes.
        combine_prefix: the prefix of the kernels that reduce the partial results.
        parameter: the divisor of a sum (0 for none), or the correction of a variance.
        takes_divisor: whether kernels of the older design have that parameter.
    """

    prefix: str
    input_type: str
    output_type: str
    partial_type: str
    combine_prefix: str
    parameter: float = 0.0
    takes_divisor: bool = False

    def name(self, variant: str = "") -> str:
        """The kernel for a layout."""
        return f"{self.prefix}reduction{variant}_{self.input_type}_{self.output_type}"

    @property
    def first_pass(self) -> ReductionOp:
        """The reduction from the input to partial results, without the division."""
        return replace(self, output_type=self.partial_type, parameter=0.0)

    @property
    def second_pass(self) -> ReductionOp:
        """The reduction from partial results to the output."""
        return replace(self, prefix=self.combine_prefix, input_type=self.partial_type)


def reduce(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    """The launches that reduce `value` to `output`, in which reduced dimensions are kept with size 1.

    Raises:
        Declined: the release has no kernel for it.
    """
    value, output = in_order_of_memory(value, output)
    if op.name("_narrow") in kernels:
        return _by_layout(kernels, op, output, value)
    return _by_ends(kernels, op, output, value)


def reduced_dimensions(value: Tensor, output: Tensor) -> list[int]:
    """The dimensions along which the sizes differ."""
    return [d for d in range(value.dim()) if value.size(d) != output.size(d)]


def any_layout(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> KernelLaunch:
    """The kernel that takes any sizes and strides: a threadgroup for each element of the output."""
    size = value.numel() // output.numel()
    params = params_of(value, output, size, op.parameter)
    arguments: dict[str, object] = {"input": value, "output": output, "params": params}
    group = min(MAX_THREADS_OF_GROUP, _whole_groups(size))
    return KernelLaunch(required(kernels, op.name()), arguments, (output.numel() * group, 1, 1), (group, 1, 1))


def params_of(value: Tensor, output: Tensor, size: int, p: float) -> dict[str, object]:
    """The struct NormParams: the layouts of input and output; `size` elements are reduced to one."""
    return {
        "p": p,
        "reduction_size": size,
        "ndim": value.dim(),
        "input_sizes": list(value.shape),
        "input_strides": list(value.stride()),
        "output_sizes": list(output.shape),
        "output_strides": list(output.stride()),
    }


# -------------------------------------------------------------------------------- 2.13.0: innermost or outermost


def _by_ends(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    reduced = reduced_dimensions(value, output)
    if output.numel() > 1 and value.is_contiguous() and output.is_contiguous() and len(reduced) == 1:
        if reduced == [0] and value.dim() >= 2:
            return [_outermost(kernels, op, output, value)]
        if reduced == [value.dim() - 1]:
            return [innermost(kernels, op, output, value)]
    size = value.numel() // output.numel()
    groups = _equal_groups(size) if output.numel() == 1 else 1
    if groups > 1:
        return _in_two_passes(kernels, op, output, value, groups)
    return [any_layout(kernels, op, output, value)]


def _outermost(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> KernelLaunch:
    rows, columns = value.size(0), value.numel() // value.size(0)
    arguments: dict[str, object] = {"input": value, "output": output, "sizes": [rows, columns, 1]}
    if op.takes_divisor:
        arguments["divisor"] = op.parameter
    across = -(-columns // _OUTER_GROUP) * _OUTER_GROUP
    group = (_OUTER_GROUP, _OUTER_GROUP, 1)
    return KernelLaunch(required(kernels, op.name("_outer")), arguments, (across, _OUTER_GROUP, 1), group)


def innermost(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> KernelLaunch:
    """The kernel for rows of a dense tensor, one SIMD group a row."""
    length = value.size(-1)
    rows = value.numel() // length
    arguments: dict[str, object] = {"input": value, "output": output, "sizes": [rows, length]}
    if op.takes_divisor:
        arguments["divisor"] = op.parameter
    groups = -(-rows // (_INNER_GROUP // _WHOLE_SIMD_GROUP))
    threads = (groups * _INNER_GROUP, 1, 1)
    return KernelLaunch(required(kernels, op.name("_inner")), arguments, threads, (_INNER_GROUP, 1, 1))


def _in_two_passes(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor, groups: int) -> list[Step]:
    partials = _partials(op.partial_type, groups)
    first = op.first_pass
    length = value.numel() // groups
    group = min(MAX_THREADS_OF_GROUP, _whole_groups(length))
    params: dict[str, object]
    if not value.is_contiguous() and op.name("_strided") in kernels:
        name = first.name("_strided")
        params = {
            "reduction_size": length,
            "ndim": value.dim(),
            "input_sizes": list(value.shape),
            "input_strides": list(value.stride()),
        }
    else:
        name = first.name()
        value = value.contiguous()
        params = {
            "reduction_size": length,
            "ndim": 2,
            "input_sizes": [groups, length],
            "input_strides": [length, 1],
            "output_sizes": [groups, 0],
            "output_strides": [1, 0],
        }
    arguments: dict[str, object] = {"input": value, "output": partials, "params": params}
    slices = KernelLaunch(required(kernels, name), arguments, (groups * group, 1, 1), (group, 1, 1))
    return [slices, any_layout(kernels, op.second_pass, output.view(1), partials)]


# --------------------------------------------------------------------------------- 2.14 and 2.15: [outer, dim, inner]


def _by_layout(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    if output.numel() == 1:
        groups = _equal_groups(value.numel())
        if groups == 1:
            return [any_layout(kernels, op, output, value)]
        return _flat(kernels, op, output, value.contiguous(), groups)
    plan = layout_plan(value, output)
    if plan is None:
        return [any_layout(kernels, op, output, value)]
    if plan.segments == 1:
        return [_of_layout(kernels, op, output, value, plan)]
    partials = _partials(op.partial_type, output.numel() * plan.segments)
    first = _of_layout(kernels, op.first_pass, partials, value, plan)
    return [first, _of_layout(kernels, op.second_pass, output, partials, plan.second_pass)]


def _flat(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor, groups: int) -> list[Step]:
    partials = _partials(op.partial_type, groups)
    sizes = [groups, value.numel() // groups]
    arguments: dict[str, object] = {"input": value, "output": partials, "params": sizes}
    name = required(kernels, op.first_pass.name("_flat"))
    first = KernelLaunch(name, arguments, (groups * _FLAT_GROUP, 1, 1), (_FLAT_GROUP, 1, 1))
    return [first, any_layout(kernels, op.second_pass, output.view(1), partials)]


def _of_layout(
    kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor, plan: LayoutPlan
) -> KernelLaunch:
    name = op.name(plan.kernel)
    arguments: dict[str, object] = {"input": value, "output": output, "sizes": plan.sizes}
    if op.name("_innermost") in kernels:
        arguments["param"] = op.parameter
    else:  # 2.14: other names, another order of sizes, and a parameter of sums alone
        name = name.replace("_innermost", "_inner")
        arguments["sizes"] = plan.sizes_of_2_14
        if op.takes_divisor:
            arguments["divisor"] = op.parameter
    required(kernels, name)
    if plan.strides is not None:
        arguments["strides"] = plan.strides
    return KernelLaunch(name, arguments, plan.threads, plan.group)


# ---------------------------------------------------------------------------------------------------------- shared


def _equal_groups(size: int) -> int:
    """The number of slices of equal length into which a reduction to one element is split."""
    groups = min(_MOST_GROUPS, -(-size // (MAX_THREADS_OF_GROUP * _ELEMENTS_PER_THREAD)))
    while groups > 1 and size % groups:
        groups -= 1
    return groups


def _whole_groups(length: int) -> int:
    return -(-length // _WHOLE_SIMD_GROUP) * _WHOLE_SIMD_GROUP


_PARTIAL_DTYPES = {
    "float": torch.float32,
    "float2": torch.complex64,
    "float3": torch.complex128,  # 16 bytes, which is the room that three floats take
    "half": torch.float16,
    "half2": torch.complex32,
    "bfloat": torch.bfloat16,
    "long": torch.int64,
    "int": torch.int32,
    "short": torch.int16,
    "char": torch.int8,
    "uchar": torch.uint8,
}


def _partials(type_name: str, count: int) -> Tensor:
    return torch.empty(count, dtype=_PARTIAL_DTYPES[type_name], device="cpu")
