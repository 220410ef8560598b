"""Elementwise operators of three tensors: `where`, `clamp` to tensors, `lerp`, `addcmul`, `addcdiv`.

Source: TensorCompare.mm, PointwiseOps.mm and Lerp.mm of aten/src/ATen/native/mps/operations and
aten/src/ATen/native/TensorCompare.cpp (main, late 2026). 2.13.0 has no kernels for `where`, `addcmul` and `addcdiv`,
which run in MPSGraph. Its own kernels for `lerp` have a convention only for dense tensors, because the host code for
the others is not public.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .binary_kernels import binary, parameter_of
from .copies import copied
from .metal_types import metal_name
from .ternary_kernels import of_one_dtype, scalar_tensor, ternary


def _where(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    condition, result = call["condition"], call.result
    steps: list[Step] = []
    branches = []
    for name in ("self", "other"):
        branch = call[name]
        if not isinstance(branch, Tensor):
            branch = scalar_tensor(branch, result.dtype)
        elif branch.dtype != result.dtype and name in call.on_host:
            branch = branch.to(result.dtype)
        elif branch.dtype != result.dtype:
            converted = torch.empty_like(branch, dtype=result.dtype)
            steps.append(copied(kernels, converted, branch))
            branch = converted
        branches.append(branch)
    if condition.dtype != torch.bool:
        raise Declined("a condition that is not bool")
    return [*steps, ternary(kernels, "where", result, [condition, *branches], converts=False)]


def _clamp(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`clamp` to two tensors; with only one it is `maximum` or `minimum`."""
    source, minimum, maximum = call["self"], call["min"], call["max"]
    if minimum is None or maximum is None:
        kernel, bound = ("minimum", maximum) if minimum is None else ("maximum", minimum)
        return [binary(kernels, kernel, call.result, source, bound)]
    return [ternary(kernels, "clamp", call.result, [source, minimum, maximum])]


def _extremum(kernel: str, bound: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return [binary(kernels, kernel, call.result, call["self"], call[bound])]

    return plan


def _product_sum(kernel: str) -> Planner:
    """`addcmul` and `addcdiv`: the factor of half types is passed in float32, others in their own type."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        result = call.result
        wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
        parameter = parameter_of(call["value"], wide.get(result.dtype, result.dtype))
        operands = [_tensor(call[name], result.dtype) for name in ("self", "tensor1", "tensor2")]
        return [ternary(kernels, kernel, result, operands, parameter)]

    return plan


def _tensor(operand: Tensor | complex, dtype: torch.dtype) -> Tensor:
    return operand if isinstance(operand, Tensor) else scalar_tensor(operand, dtype)


def _lerp(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    operands = [call["self"], call["end"], call["weight"]]
    if "lerp_dense_float_float" in kernels:
        return [ternary(kernels, "lerp", call.result, operands)]
    return [_older_lerp(kernels, call.result, operands)]


def _older_lerp(kernels: ReleaseKernels, result: Tensor, operands: list[Tensor]) -> KernelLaunch:
    if not of_one_dtype([result, *operands]):
        raise Declined("lerp of dtypes that differ")
    start, end, weight = operands
    if geometry(result, *operands).contiguous and weight.numel() == result.numel():
        form = "dense"
    elif weight.numel() == 1 and geometry(result, start, end).contiguous:
        form = "scalar_weight"
    else:
        raise Declined("lerp of strided tensors")
    kernel = required(kernels, f"lerp_tensor_{form}_{metal_name(result.dtype)}")
    arguments = {"out": result, "self": start, "end": end, "weight": weight}
    return KernelLaunch(kernel, arguments, *in_line(result.numel()))


def _forms(name: str) -> tuple[str, str, str]:
    return name, f"{name}_", f"{name}.out"


def _of_tensor(name: str) -> tuple[str, str, str]:
    return f"{name}.Tensor", f"{name}_.Tensor", f"{name}.Tensor_out"


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("where.self", "where.self_out"), _where),
    **dict.fromkeys(_of_tensor("clamp"), _clamp),
    **dict.fromkeys(_of_tensor("clamp_min"), _extremum("maximum", "min")),
    **dict.fromkeys(_of_tensor("clamp_max"), _extremum("minimum", "max")),
    **dict.fromkeys(_of_tensor("lerp"), _lerp),
    **dict.fromkeys(_forms("addcmul"), _product_sum("addcmul")),
    **dict.fromkeys(_forms("addcdiv"), _product_sum("addcdiv")),
}
