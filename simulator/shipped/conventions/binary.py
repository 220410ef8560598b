"""Elementwise operators of two tensors: which kernel each overload takes.

Source: BinaryKernel.mm, BinaryOps.mm, BitwiseOps.mm and ActivationKernel.mm of aten/src/ATen/native/mps/operations and
aten/src/ATen/native/BinaryOps.cpp (main, late 2026). The kernels of a release decide: if 2.13.0 has none, its
operator runs in MPSGraph (pow of two tensors, logical_*, heaviside, sigmoid_backward, tanh_backward, mish_backward).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step
from .binary_kernels import Operand, binary, parameter_of
from .copies import copied
from .metal_types import is_integral
from .names import table


def _two(call: Call) -> tuple[Operand, Operand]:
    """The two operands: the first two arguments."""
    left, right, *_ = call.arguments.values()
    return left, right


def arithmetic(kernel: str) -> Planner:
    """The planner of an operator whose operands are promoted to one type, which is also the result's."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return [binary(kernels, kernel, call.result, *_two(call))]

    return plan


def floating(kernel: str) -> Planner:
    """The planner of an operator that converts integers to floating point."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        left, right = _two(call)
        return [binary(kernels, kernel, call.result, left, right, common=_as_floats(left, right))]

    return plan


def comparison(kernel: str) -> Planner:
    """The planner of an operator whose kernels give bool, and convert it if the result has a different type."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return [binary(kernels, kernel, call.result, *_two(call), natural=torch.bool)]

    return plan


def _as_floats(left: Operand, right: Operand) -> torch.dtype:
    common = torch.result_type(left, right)
    return torch.get_default_dtype() if is_integral(common) else common


def _of_tensor(name: str, out: str = "out") -> tuple[str, str, str]:
    return f"{name}.Tensor", f"{name}_.Tensor", f"{name}.{out}"


def _plain(name: str) -> tuple[str, str, str]:
    return name, f"{name}_", f"{name}.out"


def _comparisons(name: str) -> tuple[str, ...]:
    forms = ("Tensor", "Scalar")
    return (
        *(f"{name}.{form}" for form in forms),
        *(f"{name}_.{form}" for form in forms),
        *(f"{name}.{form}_out" for form in forms),
    )


def _special(name: str) -> tuple[str, ...]:
    return f"special_{name}", f"special_{name}.out"


def _gradient(name: str, out: str = "grad_input") -> tuple[str, str]:
    return name, f"{name}.{out}"


_POLYNOMIALS = (
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
)


def _sum(sign: int) -> Planner:
    """`add` and `sub`: there are separate kernels for alpha other than 1."""
    name = "add" if sign > 0 else "sub"

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        left, right, alpha = call["self"], call["other"], call["alpha"]
        if alpha == 1:
            return [binary(kernels, name, call.result, left, right)]
        # Until `sub_alpha` went, the host copied where alpha is 0; what it does since is not known.
        before = _has(kernels, "sub_alpha")
        if alpha == 0:
            if not before or not isinstance(left, torch.Tensor):
                raise Declined("alpha of 0")
            in_place = left.data_ptr() == call.result.data_ptr()
            return [] if in_place else [copied(kernels, call.result, left)]
        kernel, factor = (f"{name}_alpha", alpha) if before else ("add_alpha", sign * alpha)
        return [_with_alpha(kernels, kernel, call, left, right, factor)]

    return plan


def _has(kernels: ReleaseKernels, operator: str) -> bool:
    return f"{operator}_dense_float_float_float" in kernels


def _rsub(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`rsub` is `sub` with its operands swapped."""
    swapped = {"self": call["other"], "other": call["self"], "alpha": call["alpha"]}
    return _sum(-1)(Call(call.overload, swapped, call.results, call.on_host), kernels)


def _with_alpha(
    kernels: ReleaseKernels, kernel: str, call: Call, left: Operand, right: Operand, alpha: complex
) -> KernelLaunch:
    """A launch with alpha in the operands' common type, or in the result's type if theirs differ."""
    common = torch.result_type(left, right)
    types = {o.dtype for o in (left, right) if isinstance(o, torch.Tensor)}
    dtype = common if len(types) == 1 and not _has_number(left, right) else call.result.dtype
    return binary(kernels, kernel, call.result, left, right, parameter_of(alpha, dtype))


def _has_number(left: Operand, right: Operand) -> bool:
    return not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor))


def _division(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    mode = call.arguments.get("rounding_mode")
    if mode is None:
        return floating("div_true")(call, kernels)
    return arithmetic(f"div_{mode}")(call, kernels)


def _extremum(name: str) -> Planner:
    """`fmax` and `fmin`; for integers they are `maximum` and `minimum`."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        left, right = _two(call)
        integral = is_integral(torch.result_type(left, right))
        kernel = {"fmax": "maximum", "fmin": "minimum"}[name] if integral else name
        return [binary(kernels, kernel, call.result, left, right)]

    return plan


def _complex(kernel: str) -> Planner:
    """`complex` and `polar`, whose kernels make a complex number from two real ones."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        left, right = _two(call)
        natural = {torch.float32: torch.complex64, torch.float16: torch.complex32}.get(left.dtype)  # type: ignore[union-attr]
        return [binary(kernels, kernel, call.result, left, right, natural=natural)]

    return plan


def _isnan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`isnan` is the comparison of a tensor with itself."""
    return [binary(kernels, "ne", call.result, call["self"], call["self"], natural=torch.bool)]


def _gelu_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    kernel = "gelu_tanh_backward" if call["approximate"] == "tanh" else "gelu_backward"
    return [binary(kernels, kernel, call.result, call["grad_output"], call["self"])]


def _log_sigmoid_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [binary(kernels, "log_sigmoid_backward", call.result, call["self"], call["grad_output"])]


def _lerp_scalar(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    dtype = call.result.dtype
    reduced = dtype in (torch.float16, torch.bfloat16)
    wide = reduced and "lerp_alpha_dense_half_half_float" in kernels
    parameter = parameter_of(call["weight"], torch.float32 if wide else dtype)
    return [binary(kernels, "lerp_alpha", call.result, call["self"], call["end"], parameter)]


_FLOATING: list[tuple[tuple[str, ...], str]] = [
    (_plain("atan2"), "atan2"),
    (_of_tensor("copysign"), "copysign"),
    (("logaddexp", "logaddexp.out"), "logaddexp"),
    (("logaddexp2", "logaddexp2.out"), "logaddexp2"),
    (("xlogy.Tensor", "xlogy_.Tensor", "xlogy.OutTensor"), "xlogy"),
    (_special("xlog1py"), "xlog1py"),
    (_special("zeta"), "zeta"),
    *((_special(name), name) for name in _POLYNOMIALS),
]

_ARITHMETIC: list[tuple[tuple[str, ...], str]] = [
    (_of_tensor("mul"), "mul"),
    ((*_of_tensor("remainder", "Tensor_out"), "remainder.Scalar_Tensor"), "remainder"),
    (_of_tensor("fmod", "Tensor_out"), "fmod"),
    (("floor_divide", "floor_divide_.Tensor", "floor_divide.out"), "div_floor"),
    (("maximum", "maximum.out"), "maximum"),
    (("minimum", "minimum.out"), "minimum"),
    *((_of_tensor(f"bitwise_{name}", "Tensor_out"), f"bitwise_{name}") for name in ("and", "or", "xor")),
    *((_of_tensor(f"bitwise_{d}_shift", "Tensor_out"), f"bitwise_{d}_shift") for d in ("left", "right")),
    *(((f"__lshift__.{f}", f"__ilshift__.{f}"), "bitwise_left_shift") for f in ("Tensor", "Scalar")),
    *(((f"__rshift__.{f}", f"__irshift__.{f}"), "bitwise_right_shift") for f in ("Tensor", "Scalar")),
    *((_plain(name), name) for name in ("gcd", "heaviside", "hypot", "igamma", "igammac", "lcm", "nextafter")),
    (("pow.Tensor_Tensor", "pow_.Tensor", "pow.Tensor_Tensor_out"), "pow"),
    (_gradient("sigmoid_backward"), "sigmoid_backward"),
    (_gradient("tanh_backward"), "tanh_backward"),
    (_gradient("silu_backward"), "silu_backward"),
    (("mish_backward",), "mish_backward"),
    (_gradient("hardsigmoid_backward"), "hardsigmoid_backward"),
    (("hardswish_backward",), "hardswish_backward"),
]

_COMPARISONS: list[tuple[tuple[str, ...], str]] = [
    *((_comparisons(name), name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((_plain(f"logical_{name}"), f"logical_{name}") for name in ("and", "or", "xor")),
]

PLANNERS: dict[str, Planner] = {
    **table(_ARITHMETIC, arithmetic),
    **table(_FLOATING, floating),
    **table(_COMPARISONS, comparison),
    **table([((name, f"{name}.out"), name) for name in ("fmax", "fmin")], _extremum),
    **table([(("complex", "complex.out"), "make_complex"), (("polar", "polar.out"), "polar")], _complex),
    **dict.fromkeys(_of_tensor("add"), _sum(1)),
    **dict.fromkeys(_of_tensor("sub"), _sum(-1)),
    "rsub.Tensor": _rsub,
    "isnan": _isnan,
    **dict.fromkeys(_of_tensor("div"), _division),
    **dict.fromkeys(("div.Tensor_mode", "div_.Tensor_mode", "div.out_mode"), _division),
    **dict.fromkeys(_gradient("gelu_backward"), _gelu_backward),
    **dict.fromkeys(_gradient("log_sigmoid_backward"), _log_sigmoid_backward),
    **dict.fromkeys(("lerp.Scalar", "lerp_.Scalar", "lerp.Scalar_out"), _lerp_scalar),
}
