"""Random numbers: distributions that fill a tensor, samples by parameters, dropout.

The host code is aten/src/ATen/native/mps/operations/{Distributions,Dropout}.mm with the templates of
aten/src/ATen/native/DistributionTemplates.h. Public versions are older than 2.13.0; how many numbers a thread draws,
and the parameters, are those of its binary. Philox continues from the generator's offset. A Mac's offset grows by the
threads of a launch, the simulated device's by one a call. So the first draw after seeding has a Mac's numbers; later
ones have the same distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p, sqrt
from typing import Final

import torch
from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import (
    ERROR_BUFFER,
    MAX_THREADS_OF_GROUP,
    Declined,
    KernelLaunch,
    Planner,
    ReleaseKernels,
    Step,
    in_line,
    required,
)
from .binary_kernels import binary
from .copies import copied
from .metal_types import metal_name

_NUMBERS_OF_A_DRAW = 2**28
"""How far draws of one generator are apart in Philox's counter; a Mac's are as far as the numbers that they took."""
_LARGEST_SMALL_PERMUTATION = 384
_PERMUTATION_GROUP = 256

# What `random_()` draws below, by dtype: every value of an integer, whole numbers that a float holds exactly.
_RANGES: Final = {
    torch.uint8: 2**8,
    torch.int8: 2**7,
    torch.int16: 2**15,
    torch.int32: 2**31,
    torch.int64: 2**63 - 1,
    torch.bool: 2,
    torch.float32: 2**24,
    torch.float16: 2**11,
    torch.bfloat16: 2**8,
}


def _state(call: Call) -> list[int]:
    """The seed, and the position in its sequence at which this call starts to draw."""
    generator = call.arguments.get("generator") or torch.mps._get_default_mps_generator()
    draws_before = generator.get_offset() - 1
    seed = generator.initial_seed()
    return [seed - 2**64 if seed >= 2**63 else seed, draws_before * _NUMBERS_OF_A_DRAW]


# ------------------------------------------------------------------------------------------------- distributions
def _filled(
    call: Call, kernels: ReleaseKernels, kernel: str, parameters: Sequence[float], result: Tensor | None = None
) -> list[Step]:
    """The steps that fill the result or its real view; one with gaps is filled through a dense temporary."""
    result = call.result if result is None else result
    name = required(kernels, f"{kernel}_{metal_name(result.dtype)}")
    dense = result if geometry(result).contiguous else torch.empty(result.shape, dtype=result.dtype, device="cpu")
    numel = result.numel()
    arguments = {"output": dense, "params": list(parameters), "seed_base_offset": _state(call), "numel": numel}
    two_a_thread = kernel == "random_int" and result.element_size() == 8
    steps: list[Step] = [KernelLaunch(name, arguments, *in_line(-(-numel // (2 if two_a_thread else 4))))]
    return steps if dense is result else [*steps, copied(kernels, result, dense)]


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _uniform(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _filled(call, kernels, "uniform_dist", (call["from"], call["to"]), _real(call.result))


def _normal(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _standardised(call, kernels, call["mean"], call["std"])


def _standardised(call: Call, kernels: ReleaseKernels, mean: float, std: float) -> list[Step]:
    """A normal distribution; the variance of a complex number is split between its parts."""
    result = call.result
    return _filled(call, kernels, "normal", (mean, std / sqrt(2) if result.is_complex() else std), _real(result))


def _normal_by_tensors(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`normal` with a mean or deviation for each element: draw, then multiply and add in place."""
    result, mean, std = call.result, call["mean"], call["std"]
    if isinstance(std, Tensor):
        steps = _standardised(call, kernels, 0.0, 1.0)
        steps.append(binary(kernels, "mul", result, result, std))
    else:
        steps = _standardised(call, kernels, 0.0, std)
    return [*steps, binary(kernels, "add", result, result, mean)]


def _log_normal(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _filled(call, kernels, "log_normal", (call["mean"], call["std"]))


def _cauchy(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _filled(call, kernels, "cauchy", (call["median"], call["sigma"]))


def _exponential(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _filled(call, kernels, "exponential", (call["lambd"], 0.0))


def _geometric(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _filled(call, kernels, "geometric", (log1p(-call["p"]), 0.0))


def _bernoulli(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    probabilities = call["self"] if call.overload == "bernoulli.out" else call["p"]
    if not isinstance(probabilities, Tensor):
        return _filled(call, kernels, "bernoulli_scalar", (probabilities, 0.0))
    if not probabilities.dim():
        return _filled(call, kernels, "bernoulli_scalar", (probabilities.item(), 0.0))
    return _bernoulli_of_each(call, kernels, probabilities)


def _bernoulli_of_each(call: Call, kernels: ReleaseKernels, probabilities: Tensor) -> Sequence[Step]:
    result = call.result
    if probabilities.shape != result.shape:
        raise Declined("probabilities of another size, which the host refuses")
    name = required(kernels, f"bernoulli_tensor_{metal_name(result.dtype)}")
    steps: list[Step] = []
    floats = probabilities
    if probabilities.dtype != torch.float32:
        floats = torch.empty(probabilities.shape, dtype=torch.float32, device="cpu")
        steps.append(copied(kernels, floats, probabilities))
    dense = result if result.is_contiguous() else torch.empty(result.shape, dtype=result.dtype, device="cpu")
    numel = result.numel()
    arguments = {
        "output": dense,
        "probs": floats.contiguous(),
        "seed_base_offset": _state(call),
        "numel": numel,
        "error_buf": ERROR_BUFFER,
    }
    steps.append(KernelLaunch(name, arguments, *in_line(-(-numel // 4))))
    return steps if dense is result else [*steps, copied(kernels, result, dense)]


# ------------------------------------------------------------------------------------------------- whole numbers
def _random(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _whole_numbers(call, kernels, 0, _range_of(call.result.dtype))


def _random_to(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _whole_numbers(call, kernels, 0, call["to"])


def _random_from(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    first, end, dtype = call["from"], call["to"], call.result.dtype
    if end is not None:
        return _whole_numbers(call, kernels, first, end - first)
    if first == -(2**63):
        return _whole_numbers(call, kernels, 0, 0)  # all 64 bits
    if dtype.is_floating_point:
        return _whole_numbers(call, kernels, first, _range_of(dtype) - first + 1)
    last = 1 if dtype == torch.bool else torch.iinfo(dtype).max
    return _whole_numbers(call, kernels, first, last - first + 1)


def _range_of(dtype: torch.dtype) -> int:
    if dtype not in _RANGES:
        raise Declined(f"no range for {str(dtype).removeprefix('torch.')}")
    return _RANGES[dtype]


def _whole_numbers(call: Call, kernels: ReleaseKernels, first: int, count: int) -> Sequence[Step]:
    dtype = call.result.dtype
    if dtype.is_floating_point and max(abs(first), abs(first + count)) > 2 * _range_of(dtype):
        raise Declined("a range that the dtype rounds")
    signed = count - 2**64 if count >= 2**63 else count
    return _filled(call, kernels, "random_int", (first, 0 if signed == -1 else signed))


def _randperm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    count, result = call["n"], call.result
    if count > _LARGEST_SMALL_PERMUTATION or not result.is_contiguous():
        raise Declined("a sort of random numbers")
    name = required(kernels, f"randperm_small_{metal_name(result.dtype)}")
    group = min(count, _PERMUTATION_GROUP)
    arguments = {"output": result, "seed_base_offset": _state(call), "n": count}
    return [KernelLaunch(name, arguments, (group, 1, 1), (group, 1, 1))]


# ------------------------------------------------------------------------------------------------- samples
def _standard_gamma(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    name = required(kernels, f"standard_gamma_{metal_name(call.result.dtype)}")
    return _sampled(call, name, {"alpha_in": call["self"]})


def _poisson(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    name = required(kernels, f"poisson_{metal_name(call.result.dtype)}")
    return _sampled(call, name, {"lambda_in": call["self"]})


def _binomial(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    name = required(kernels, f"standard_binomial_{metal_name(call.result.dtype)}")
    return _sampled(call, name, {"count_in": call["count"], "prob_in": call["prob"]})


def _sampled(call: Call, name: str, parameters: dict[str, Tensor]) -> Sequence[Step]:
    result = call.result
    laid_out = {argument: _laid_out(result, parameter) for argument, parameter in parameters.items()}
    arguments = {"output": result, **laid_out, "seed_base_offset": _state(call)}
    return [KernelLaunch(name, arguments, *in_line(result.numel()))]


def _laid_out(result: Tensor, operand: Tensor) -> Tensor:
    """An operand with the strides of a dense result, for kernels that use one index for both."""
    if not geometry(result).contiguous or operand.dtype != result.dtype:
        raise Declined("a result with gaps or of another dtype")
    if operand.shape == result.shape and operand.stride() == result.stride():
        return operand
    return torch.empty_like(result).copy_(operand)


def _sample_dirichlet(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    alpha, result = call["self"].contiguous(), call.result
    if not result.is_contiguous():
        raise Declined("a result with gaps or of another dtype")
    name = required(kernels, f"standard_dirichlet_{metal_name(result.dtype)}")
    categories = alpha.shape[-1] if alpha.dim() else 1
    group = min(categories, MAX_THREADS_OF_GROUP)
    arguments = {"output": result, "alpha_in": alpha, "seed_base_offset": _state(call), "num_alpha": categories}
    return [KernelLaunch(name, arguments, (alpha.numel() // categories * group, 1, 1), (group, 1, 1))]


def _standard_gamma_grad(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result = call.result
    name = required(kernels, f"standard_gamma_grad_{metal_name(result.dtype)}")
    operands = {"self_data": _laid_out(result, call["self"]), "output_data": _laid_out(result, call["output"])}
    return [KernelLaunch(name, {"output": result, **operands}, *in_line(result.numel()))]


def _dirichlet_grad(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result = call.result
    name = required(kernels, f"dirichlet_grad_{metal_name(result.dtype)}")
    operands = {f"{argument}_data": _laid_out(result, call[argument]) for argument in ("x", "alpha", "total")}
    return [KernelLaunch(name, {"output": result, **operands}, *in_line(result.numel()))]


# ------------------------------------------------------------------------------------------------- dropout
def _native_dropout(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    rate = call["p"]
    if not rate or call["train"] is False:
        raise Declined("nothing is dropped")
    result, mask = call.results
    if mask.stride() != result.stride():
        raise Declined("a mask of another layout")
    name = required(kernels, f"dropout_fwd_{metal_name(result.dtype)}")
    kept = 1.0 - rate
    arguments = {
        "output": result,
        "mask": mask,
        "input": _laid_out(result, call["input"]),
        "params": [kept, 1 / kept if kept else 0.0],
        "seed_base_offset": _state(call),
        "numel": result.numel(),
    }
    return [KernelLaunch(name, arguments, *in_line(-(-result.numel() // 4)))]


def _native_dropout_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result, mask = call.result, call["mask"]
    name = required(kernels, f"dropout_bwd_{metal_name(result.dtype)}")
    laid_out = mask if mask.stride() == result.stride() else torch.empty_like(result, dtype=torch.bool).copy_(mask)
    arguments = {
        "grad_input": result,
        "grad_output": _laid_out(result, call["grad_output"]),
        "mask": laid_out,
        "scale": call["scale"],
    }
    return [KernelLaunch(name, arguments, *in_line(result.numel()))]


def _composed(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    raise Declined("composed of other operators")


PLANNERS: dict[str, Planner] = {
    "uniform_": _uniform,
    "normal_": _normal,
    **dict.fromkeys(
        (
            "normal.Tensor_float",
            "normal.Tensor_float_out",
            "normal.float_Tensor",
            "normal.float_Tensor_out",
            "normal.Tensor_Tensor",
            "normal.Tensor_Tensor_out",
        ),
        _normal_by_tensors,
    ),
    "log_normal_": _log_normal,
    "cauchy_": _cauchy,
    "exponential_": _exponential,
    "geometric_": _geometric,
    **dict.fromkeys(("bernoulli_.float", "bernoulli_.Tensor", "bernoulli.out"), _bernoulli),
    "random_": _random,
    "random_.to": _random_to,
    "random_.from": _random_from,
    "randperm.generator_out": _randperm,
    "_standard_gamma": _standard_gamma,
    "_standard_gamma_grad": _standard_gamma_grad,
    "_sample_dirichlet": _sample_dirichlet,
    "_dirichlet_grad": _dirichlet_grad,
    "poisson": _poisson,
    "binomial": _binomial,
    "native_dropout": _native_dropout,
    "native_dropout_backward": _native_dropout_backward,
    **dict.fromkeys(("multinomial", "multinomial.out"), _composed),
}
