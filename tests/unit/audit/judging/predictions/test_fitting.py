"""Every element that differs must be what a model makes of the inputs: each model on its own inputs, and corrupted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.calls.cpu_kernels import register
from mpsmith.audit.judging import agreement, judge
from mpsmith.audit.judging.arguments import storage_of
from mpsmith.audit.judging.compare import compare
from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.judging.predictions import OF_HOST_CODE, PREDICTIONS
from mpsmith.audit.judging.predictions.fitting import fitting_predictions
from mpsmith.audit.judging.predictions.prediction import Calls, ModelError, Prediction, Ulp
from mpsmith.audit.judging.predictions.subnormals import subnormals_flushed
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.nested import map_leaves
from mpsmith.audit.model.verdicts import ROUNDING, TOGETHER

INF, NAN = math.inf, math.nan
LARGEST = torch.finfo(torch.float32).max
LEAST = torch.iinfo(torch.int64).min
ATEN = torch.ops.aten
EVERY = PREDICTIONS + OF_HOST_CODE
BY_NAME = {prediction.name: prediction for prediction in EVERY}


@dataclass(frozen=True)
class Shown:
    """A call that shows a defect, and beside it elements that are right.

    `device` is what the device does where there is no model; `moves` lets the model's results be off by an ULP; with
    `form` the shape or the dtype differs. `others` are arguments to try where a processor's own rounding hides the
    defect in `args`.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    differentiable: bool = False
    device: Callable[..., Any] | None = None
    moves: bool = False
    form: bool = False
    others: tuple[tuple[Any, ...], ...] = ()


def numbers(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def reflectors(product: float, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Arguments of ormqr that require gradients; `product` is tau times the squared length of each reflector."""
    return torch.ones(4, 4).requires_grad_(), (product / numbers(4, 3, 2, 1)).requires_grad_(), other


def plane(*values: float) -> Tensor:
    return torch.tensor(values).reshape(1, 1, 4, 4)


def group_norm_gradients(gradient: Tensor, x: Tensor) -> Tensor:
    """Those of the weights of two channels."""
    unit = numbers(1).view(1, 1)
    result: Tensor = ATEN.native_group_norm_backward(
        gradient, x, unit, unit, torch.ones(2), 1, 2, 2, 1, [False, True, True]
    )[1]
    return result


SIXTEEN = plane(*(float(step * 7 % 16) for step in range(16)))
WITH_NAN = plane(*(NAN if step == 5 else float(step * 7 % 16) for step in range(16)))
GRID = torch.tensor([[[[0.25, -0.5], [NAN, 0.0]]]])
ADAM = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-6, "amsgrad": False, "maximize": False}

SHOWN: dict[str, Shown] = {
    "abs-of-integers-through-float": Shown(torch.abs, (torch.tensor([-3, -(2**24) - 1, LEAST, 2**53 + 1]),)),
    "erfc-as-one-less-erf": Shown(torch.special.erfc, (numbers(-1, 0.5, 6, 5),)),
    "expm1-by-exp-from-1e-5-on": Shown(torch.expm1, (numbers(0.00372, 1.5, -0.0041),)),
    "digamma-by-the-fraction-of-a-negative": Shown(torch.special.digamma, (numbers(2.5, -1e-8, -1.0001),)),
    "lgamma-of-infinity": Shown(torch.lgamma, (numbers(2.5, INF, 0.5),)),
    "lgamma-of-small-numbers": Shown(torch.lgamma, (numbers(2.5, 1.00e-3, 1.0017e-3),)),
    "shift-counts-out-of-range": Shown(
        torch.bitwise_left_shift, (torch.tensor([3, 3, 3], dtype=torch.int32), torch.tensor([1, 33, -1]).int())
    ),
    "infinite-degree-of-a-polynomial": Shown(
        torch.special.hermite_polynomial_h, (numbers(2, 2, 1.5), numbers(2, INF, 3))
    ),
    "product-rounded-before-a-sum": Shown(torch.rsub, (numbers(1, LARGEST), numbers(2, LARGEST)), {"alpha": 2}),
    "zeta-in-single-precision": Shown(torch.special.zeta, (numbers(3, 60), torch.tensor([2, 100000]))),
    "quotient-rounded-down": Shown(torch.floor_divide, (numbers(7, INF, -1), numbers(2, 2, INF))),
    "remainder-by-a-rounded-quotient": Shown(torch.remainder, (numbers(7, 1, -5.5), numbers(2, INF, 3))),
    "bessel-of-halves-overflows": Shown(torch.special.i1, (numbers(1, 11.1, -12).half(),)),
    "hypot-overflows": Shown(torch.hypot, (numbers(3, 3e30), numbers(4, 4e30))),
    "lerp-from-the-first-end-alone": Shown(torch.lerp, (numbers(1, -1e8), numbers(2, 1.5), 1.0)),
    "dropped-gradients-are-zero": Shown(
        ATEN.native_dropout_backward, (numbers(1, NAN), torch.tensor([True, False]), 2.0)
    ),
    "divisor-of-the-least-integer": Shown(torch.gcd, (torch.tensor([6, LEAST]), torch.tensor([4, LEAST + 1]))),
    "complex-arcsines-cancel": Shown(torch.asin, (torch.tensor([0.5 + 0.5j, 1e-4 + 0.177j, 30 + 0.01j]),)),
    "complex-square-roots-cancel": Shown(lambda z: (z.sqrt(), z**0.5), (torch.tensor([3 + 4j, 8 + 1e-3j]),)),
    "complex-sinh-and-log1p-cancel": Shown(torch.log1p, (torch.tensor([0.5 + 0.5j, 1.234e-4 + 0j]),)),
    "complex-expm1-reduced-by-a-short-logarithm": Shown(torch.expm1, (torch.tensor([0.1 + 0.2j, 7.4 + 0j]),)),
    "complex-logarithm-of-a-signed-zero": Shown(torch.log, (torch.tensor([1 + 1j, complex(-0.0, 0.0)]),)),
    "complex-logaddexp-of-equal-real-parts": Shown(
        torch.logaddexp, (torch.tensor([1 + 1j, 1 + 1j]), torch.tensor([2 + 0.5j, 1 + 0.5j]))
    ),
    "complex-sinc-of-zero": Shown(torch.sinc, (torch.tensor([0.5 + 0.5j, 0j]),)),
    "complex-magnitude-in-both-parts": Shown(
        lambda z: torch.abs(z, out=torch.empty(0, dtype=torch.complex64)), (torch.tensor([3 + 4j, 0j]),)
    ),
    "infinite-quotients-of-complex-numbers": Shown(
        torch.div, (torch.tensor([1 + 1j, 1 + 2j]), torch.tensor([2 + 1j, complex(-0.0, 0.0)]))
    ),
    "infinities-times-a-complex-one": Shown(
        torch.add, (torch.tensor([1 + 1j, 1 + 2j]), torch.tensor([2 + 1j, complex(INF, 3.0)]))
    ),
    "infinities-in-complex-functions": Shown(torch.expm1, (torch.tensor([0.1 + 0.2j, complex(INF, 0.0)]),)),
    "adaptive-windows-of-one-size": Shown(
        torch.nn.functional.adaptive_max_pool2d, (torch.arange(25.0).reshape(1, 1, 5, 5), (3, 3))
    ),
    "attention-loses-nan": Shown(
        torch.nn.functional.scaled_dot_product_attention,
        (numbers(NAN, 1, 0.5, 2).reshape(1, 1, 2, 2), *torch.linspace(-1, 1, 128).reshape(2, 1, 1, 32, 2)),
    ),
    "max-pool-skips-nan": Shown(torch.nn.functional.max_pool2d, (WITH_NAN, 2), {}, True),
    "grid-sampler-takes-nan-for-a-place": Shown(
        lambda image, grid, volume, places: (
            ATEN.grid_sampler_2d(image, grid, 1, 0, False),
            ATEN.grid_sampler_3d(volume, places, 0, 0, False),
        ),
        (SIXTEEN, GRID, torch.ones(1, 1, 2, 2, 2), torch.tensor([[[[[0.1, 0.2, 0.3], [NAN, 0, 0]]]]])),
    ),
    "index-reduce-loses-nan": Shown(
        torch.index_reduce, (numbers(1, 2), 0, torch.tensor([0, 1]), numbers(NAN, 5), "amax")
    ),
    "norm-loses-nan": Shown(torch.linalg.vector_norm, (torch.tensor([[1.0, 2.0], [3.0, NAN]]), INF, 1)),
    "powers-of-a-norm-overflow": Shown(torch.linalg.vector_norm, (torch.tensor([[3.0], [1e20]]), 6, 1)),
    "long-extremes-read-idle-lanes": Shown(torch.amin, (torch.tensor([[1, 2], [-3, 4]]), 1)),
    "overflow-in-another-order": Shown(torch.cumprod, (numbers(2, 1e-20, 1e30, 1e20), 0)),
    "float-beyond-the-integers": Shown(lambda x: x.to(torch.int64), (numbers(1, 1e20),)),
    "variance-overflows": Shown(
        torch.native_layer_norm, (torch.tensor([[1.0, 2.0], [LARGEST, -LARGEST]]), (2,), None, numbers(1, 2), 1e-5)
    ),
    "variance-cancels": Shown(
        torch.nn.functional.layer_norm, (torch.tensor([[1.0, 2.0], [999.5, 1000.25]]), (2,), None, numbers(1, 2))
    ),
    "elu-by-exp-less-one": Shown(torch.nn.functional.elu, (numbers(1, -1e-4, -2),)),
    "scan-of-long-rows-races": Shown(lambda x: tuple(torch.cummax(x, 0)), (torch.arange(4200.0).neg(),)),
    "reflectors-multiply-zero-by-nan": Shown(
        torch.linalg.householder_product, (torch.tensor([[1.0, 2.0], [3.0, 1.0], [2.0, 5.0]]), numbers(0.1, NAN))
    ),
    "one-reflector-without-a-barrier": Shown(
        torch.linalg.householder_product, (torch.tensor([[1.0, 2.0], [3.0, 1.0], [2.0, 5.0]]), numbers(0.1))
    ),
    "cpu-takes-memory-for-rows": Shown(
        lambda x: torch.narrow_copy(x, 1, 2, 2, out=torch.zeros(2, 5).mT), (torch.arange(25.0).view(5, 5),)
    ),
    "blocks-that-are-not-definite": Shown(
        lambda x: tuple(torch.linalg.cholesky_ex(x)), (torch.diag(torch.cat([torch.ones(32), torch.tensor([-1.0])])),)
    ),
    "divided-by-an-infinite-pivot": Shown(
        torch.linalg.ldl_solve,
        (torch.diag(torch.tensor([1 + 1j, complex(INF, 1)])), torch.tensor([1, 2]).int(), torch.ones(2, 1) + 0j),
    ),
    "reflections-by-sums-of-squares": Shown(
        lambda x: tuple(torch.linalg.qr(x)), (torch.tensor([[1e-8, 1.0], [3e-8, 2.0]]),)
    ),
    "reflectors-undone-in-the-gradient": Shown(
        torch.ormqr,
        reflectors(1.01, SIXTEEN[0, 0] / 3),
        differentiable=True,
        moves=True,
        others=tuple(reflectors(product, SIXTEEN[0, 0] / by) for product in (1.02, 1.05, 1.002) for by in (7, 3, 1)),
    ),
    "factors-of-what-is-not-finite": Shown(
        lambda x: tuple(torch.geqrf(x)),
        (torch.tensor([[[1.0, NAN], [2, 3]], [[1, 2], [3, 4]]], dtype=torch.complex64),),
        device=lambda x: tuple(torch.complex(factor.real, factor.imag.nan_to_num(0.0)) for factor in torch.geqrf(x)),
    ),
    "places-named-twice": Shown(torch.put, (numbers(1, 2, 3), torch.tensor([1, 1, 1]), numbers(5, 6, 7))),
    "quotients-clamped-as-numbers": Shown(
        lambda dy, x, step, zero, steps: (
            ATEN._fake_quantize_learnable_per_tensor_affine_backward(dy, x, step, zero, -8, 7, 1.0),
            ATEN._fake_quantize_learnable_per_channel_affine(x, steps, dy, 0, -8, 7, 1.0),
        ),
        (numbers(1, 1), numbers(1e30, 0.2), numbers(0.1), numbers(0), numbers(0.1, 0.1)),
    ),
    "indices-of-other-windows": Shown(
        ATEN.adaptive_max_pool3d_backward,
        (torch.ones(1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 4), torch.tensor([[[[[3, 2]]]]])),
    ),
    "combinations-of-complex-numbers": Shown(
        ATEN._compute_linear_combination, (torch.tensor([[1 + 1j], [2 + 0j]]), torch.tensor([[1 + 1j, 2 - 1j]]))
    ),
    "distances-of-huge-norms": Shown(
        ATEN._pdist_backward, (numbers(2), torch.tensor([[0.0, 0.0], [0.5, 0.25]]), 1e6, numbers(0.5))
    ),
    "bilinear-by-its-decomposition": Shown(
        ATEN.upsample_bilinear2d, ((torch.arange(64) * 37 % 251).to(torch.uint8).view(1, 1, 8, 8), [13, 13], False)
    ),
    "shrink-passes-the-gradient-of-nan": Shown(
        ATEN.hardshrink_backward, (torch.ones(65), torch.arange(65.0).where(torch.arange(65) != 1, NAN), 0.5)
    ),
    "neighbours-past-the-next": Shown(ATEN.upsample_linear1d, (numbers(4, 1, 2).view(1, 1, 3), [83], True)),
    "places-by-a-division": Shown(ATEN.upsample_nearest1d, (torch.arange(20.0).view(1, 1, 20), [12], 0.6)),
    "indices-of-infinite-maxima": Shown(
        ATEN.max_pool3d_with_indices,
        (
            torch.full((1, 2, 3, 3, 3), -INF).contiguous(memory_format=torch.channels_last_3d),
            *([1, 1, 1], [2, 2, 2]),
        ),
    ),
    "infinities-replaced-again": Shown(torch.nan_to_num, (numbers(1, -INF, INF), 0.0, INF, -INF)),
    "factors-of-the-transpose": Shown(
        lambda *of: ATEN._linalg_solve_ex(*of, left=False),
        (numbers(4, 1, 2, 3).view(2, 2), numbers(1, 2).view(1, 2)),
    ),
    "neighbours-of-weight-zero": Shown(ATEN.upsample_linear1d, (numbers(1, NAN, 2).view(1, 1, 3), [3], True)),
    "antialiasing-into-one-column": Shown(
        ATEN._upsample_lanczos2d_aa,
        ((torch.arange(18.0) * 24).sin().view(1, 1, 3, 6), [6, 1], False, None, None),
        device=lambda x, *options: ATEN._upsample_lanczos2d_aa(x.double(), *options).float(),  # digits cancel
    ),
    "grid-gradients-inside-alone": Shown(
        ATEN.grid_sampler_2d_backward, (torch.ones(1, 1, 1, 2), SIXTEEN, GRID, 0, 0, False, [True, True])
    ),
    "moments-as-sums-of-products": Shown(
        lambda *lists: ATEN._fused_adam(*([tensor] for tensor in lists[:4]), [], [lists[4]], lr=0.01, **ADAM),
        (numbers(1, 2), numbers(INF, 1), numbers(INF, 1), numbers(1, 1), torch.tensor(3.0)),
    ),
    "rounded-before-digits-cancel": Shown(lambda x: x - torch.tanh(x), (numbers(0.01, 0.02, 2),), moves=True),
    "complex-powers-by-their-angle": Shown(torch.pow, (torch.tensor([2 + 1j, 0j]), -2.0)),
    "zeros-of-a-negated-number": Shown(torch.log, (torch.tensor([2 + 1j, complex(-1.0, 0.0)]),)),
    "silu-gradient-of-huge-numbers": Shown(ATEN.silu_backward, (numbers(1, 2), numbers(0.5, 1e9))),
    "nothing-times-the-second-operand": Shown(
        lambda x, y: (torch.add(x, y, alpha=0), torch.rsub(y, x, alpha=0)), (numbers(1, 2), numbers(1, INF))
    ),
    "last-bag-to-the-end": Shown(
        ATEN._embedding_bag_forward_only,
        (torch.eye(4), torch.tensor([0, 1, 2]), torch.tensor([0, 2]), False, 0, False, None, True),
    ),
    "bag-sizes-always-returned": Shown(
        lambda *of: ATEN._embedding_bag(*of)[2],
        (torch.eye(4), torch.tensor([0, 1, 2]), torch.tensor([0, 1]), False, 0, False, None, False, 2),
    ),
    "bags-in-rows": Shown(
        lambda *of: ATEN._embedding_bag(*of)[:3],
        (
            *(torch.eye(4), torch.tensor([0, 3, 1, 3, 2, 3])[::2], torch.tensor([0, 1, 2])[::2], False, 0, False),
            *(torch.ones(3), False, 3),
        ),
    ),
    "no-gradient-for-bags-of-size-zero": Shown(
        ATEN._embedding_bag_backward,
        (
            *(torch.ones(2, 2), torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.tensor([], dtype=torch.int64)),
            *(torch.tensor([0, 2]), torch.tensor([0, 0]), 3, False, 0, False, None),
        ),
    ),
    "bag-indices-read-as-int32": Shown(
        ATEN._embedding_bag_per_sample_weights_backward,
        (
            *(torch.tensor([[1.0], [3.0]]), torch.ones(4, 1), torch.tensor([0, 1, 2]).int(), torch.tensor([0, 1])),
            *(torch.tensor([0, 1, 1]), 0),
        ),
    ),
    "lazy-signs-ignored": Shown(
        lambda matrix, side: torch.linalg.solve_triangular(torch._neg_view(matrix), side, upper=True),
        (torch.tensor([[2.0, 1], [0, 4]]), numbers(0, 4, 2, 8).view(2, 2)[:, :1]),
    ),
    "frequency-ignored": Shown(
        ATEN._embedding_bag_dense_backward,
        (
            *(torch.ones(2, 2), torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1]), torch.tensor([1, 2])),
            *(torch.tensor([0, 0]), 3, True, 0, None),
        ),
    ),
    "halves-added-in-halves": Shown(
        torch.scatter_add, (numbers(2048, 1).half(), 0, torch.zeros(40, dtype=torch.int64), torch.ones(40).half())
    ),
    "factors-of-elu-in-halves": Shown(
        ATEN.elu_backward, (numbers(1, 2).half(), 1.0, 1.0, 1e6, False, numbers(-INF, 1).half())
    ),
    "distances-without-a-part": Shown(
        ATEN._cdist_backward,
        (
            *(torch.tensor([[INF, 1.0]]), torch.tensor([[0.0, 5.0]]), torch.tensor([[1.0, 3.0], [3.0, 4.0]])),
            *(-INF, torch.tensor([[2.0, 3.0]])),
        ),
    ),
    "bytes-between-two-roundings": Shown(
        ATEN.upsample_bilinear2d, (plane(*range(180, 196)).to(torch.uint8), [5, 5], True)
    ),
    "gamma-gradient-cancels": Shown(ATEN._standard_gamma_grad, (numbers(2, 9), numbers(1, 9.99))),
    "gamma-gradients-in-rows": Shown(
        lambda x: ATEN._standard_gamma_grad(x[2:].view(2, 2), x[:2]), (numbers(1, 2, 0.5, 3, 1.5, 4),)
    ),
    "not-finite-on-either-side": Shown(lambda x: x * 1, (numbers(INF, 1),), device=lambda x: x * numbers(NAN, 1)),
    "no-number-by-definition": Shown(lambda x: x * 1, (numbers(2, 1),), device=lambda x: x * numbers(NAN, 1)),
    "not-finite-on-the-device": Shown(lambda x: x * 1, (numbers(2, 1),), device=lambda x: x * numbers(INF, 1)),
    "not-finite-on-one-side": Shown(
        group_norm_gradients,
        (numbers(1, 2, 3, 4).view(1, 2, 2), numbers(1, 3, 2, 4).view(1, 2, 2)),
        device=lambda *of: group_norm_gradients(*of) * numbers(INF, 1),
    ),
    "log-of-one-plus-exp": Shown(torch.nn.functional.softplus, (numbers(0.5, -12, -30),)),
    "gradient-without-conjugate": Shown(ATEN.sigmoid_backward, (torch.tensor([1 + 2j, 3.0]), torch.tensor([2j, 3.0]))),
    "log-sigmoid-without-its-buffer": Shown(
        ATEN.log_sigmoid_backward, (numbers(1, 2, 3), numbers(1, -2, 3), numbers(0.5, 0.6, 0.7))
    ),
    "area-functions-as-logarithms": Shown(torch.asinh, (torch.tensor([-9.8 - 6.8j, -90 + 1j]),)),
    "complex-signs-by-squares": Shown(torch.sgn, (torch.tensor([1e30 + 1e30j, 1e-30, 3 + 4j]),)),
    "area-functions-of-negated-numbers": Shown(torch.asinh, (torch.tensor([2j, 1 + 1j]),)),
    "scales-that-grow-late": Shown(
        lambda scale, steps: (ATEN._amp_update_scale_(scale, steps, torch.zeros(1), 2.0, 0.5, 3), steps),
        (numbers(8), torch.tensor([5], dtype=torch.int32)),
    ),
    "gradients-of-no-weight": Shown(
        ATEN.nll_loss_backward,
        (numbers(2), torch.ones(2, 3), torch.tensor([0, 2]), numbers(1, 1, 0), 1, 9, numbers(0)),
    ),
    "numbers-in-the-dtype-of-a-tensor": Shown(torch.isin, (-1, torch.arange(256).to(torch.uint8))),
    "real-parts-as-booleans": Shown(torch.logical_xor, (torch.tensor([1j, 1, 0]), numbers(1, 0, 1))),
    "differences-that-wrap": Shown(
        lambda *pair: ATEN.smooth_l1_loss_backward(torch.ones(2).byte(), *pair, 0, 1.0),
        (torch.tensor([1, 9], dtype=torch.uint8), torch.tensor([3, 3], dtype=torch.uint8)),
    ),
    "weight-of-two-bytes": Shown(torch.lerp, (numbers(1, 2).half(), numbers(2, 0).half(), torch.tensor(0.4))),
    "products-of-integers-as-floats": Shown(torch.prod, (torch.full((20,), 3, dtype=torch.int8),)),
    "elu-gradient-of-nan": Shown(
        lambda grad, x: ATEN.elu_backward(grad, 2.0, 1, 0.5, False, x), (torch.ones(256), torch.full((256,), NAN))
    ),
    "thresholds-replace-nan": Shown(torch.threshold, (numbers(1, NAN, -3), 0.5, 7)),
    "prelu-as-a-sum": Shown(torch.prelu, (numbers(1, -1, 2), numbers(INF))),
    "index-beside-nan": Shown(lambda x: tuple(torch.max(x, 1)), (torch.tensor([[1, NAN, 2], [3, 2, 1]]),)),
    "median-sorts-nan-last": Shown(torch.median, (numbers(3, NAN, 1, 2, 5),)),
    "unique-of-32-bits": Shown(torch.unique, (torch.tensor([5, 2**40 + 7, 2**40 + 9]),)),
    "results-in-rows": Shown(
        lambda x, rows, out: torch.index_select(x, 0, rows, out=out),
        (torch.arange(9.0).reshape(3, 3), torch.tensor([2, 0]), torch.zeros(3, 2).t()),
    ),
    "maxima-in-rows": Shown(
        lambda x, out, places: (
            ATEN.max_pool2d_with_indices.out(x, [1, 1], out=out.mT, indices=places.mT),
            out,
            places,
        )[1:],
        (torch.arange(4.0).view(1, 2, 2), torch.zeros(1, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64)),
    ),
    "outputs-made-contiguous": Shown(
        lambda x, out: (torch._C._nn.avg_pool2d(x, 2, out=out.view(2, 1, 2, 4)[..., ::2]), out)[1],
        (torch.arange(32.0).view(2, 1, 4, 4), torch.zeros(16)),
    ),
    "strides-kept": Shown(
        lambda grad, x, out: (
            ATEN.reflection_pad3d_backward.grad_input(grad, x, [1] * 6, grad_input=out.view(1, 1, 3, 3, 6)[..., ::2]),
            out,
        )[1],
        (torch.ones(1, 1, 5, 5, 5), torch.ones(1, 1, 3, 3, 3), torch.full((54,), 2.0)),
    ),
    "lists-scaled-in-rows": Shown(
        lambda x: (ATEN._amp_foreach_non_finite_check_and_unscale_([x[:, :2]], torch.zeros(1), torch.ones(1) / 2), x)[
            1
        ],
        (torch.ones(3, 4),),
    ),
    "factors-cut-to-integers": Shown(
        torch.addcmul, (torch.tensor([1, 2]), numbers(1, 2), numbers(3, 4)), {"value": -1.5}
    ),
    "results-in-channels-last": Shown(
        lambda x, out: torch.native_batch_norm(
            x, None, None, None, None, True, 0.1, 1e-5, out=(out, torch.zeros(2), torch.zeros(2))
        )[0],
        (torch.arange(8.0).view(1, 2, 2, 2).contiguous(memory_format=torch.channels_last), torch.zeros(1, 2, 2, 2)),
    ),
    "gradients-read-in-channels-last": Shown(
        lambda *of: ATEN.avg_pool2d_backward(*of, [1, 1], [1, 1], [0, 0], False, True, None),
        (torch.arange(8.0).view(1, 2, 2, 2), torch.ones(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)),
    ),
    "masks-of-the-gradients-shape": Shown(
        ATEN.native_dropout_backward, (numbers(1, 2, 3, 4).view(2, 2), torch.tensor([True, False]), 2.0)
    ),
    "adaptive-windows-with-nan": Shown(
        torch.nn.functional.adaptive_max_pool2d, (numbers(1, 2, NAN, 4, 5, 6, 7, 8).view(1, 1, 1, 8), (1, 6))
    ),
    "small-beside-one": Shown(torch.softmax, (numbers(9, 1, 2), 0), device=lambda x, dim: torch.softmax(x, dim) + 2e-7),
    "integers-between-floats": Shown(torch.linspace, (4.9, 50, 5), {"dtype": torch.int32}),
    "resized-by-one-factor": Shown(ATEN.upsample_nearest2d, (numbers(1, 2, 3, 4).view(1, 1, 2, 2), [3, 3], None, 1.7)),
    "small-beside-the-largest": Shown(
        torch.fft.fft, (numbers(99, 99, 99, 99),), device=lambda x: torch.fft.fft(x) + 2e-4
    ),
    "numbers-alike-in-six-decimals": Shown(
        lambda x: (torch.threshold(x, 3e-7, 9), torch.threshold(x, 1e-7, 9)), (numbers(2e-7, 1),)
    ),
    "quotients-inside-addcdiv": Shown(
        torch.addcdiv, (torch.tensor([1j, 2j]), torch.tensor([3 + 1j, 1 + 1j]), torch.tensor([2 + 0j, 0j]))
    ),
    "limits-of-logit-crossed": Shown(torch.logit, (numbers(0.1, 0.9), 0.75)),
    "logit-gradient-beyond-zero-and-one": Shown(ATEN.logit_backward, (numbers(1, 2, 3), numbers(0.5, 1.5, 7), -0.75)),
    "booleans-padded-as-integers": Shown(
        torch.nn.functional.pad, (torch.tensor([True, False]), (1, 0), "constant", 0.5)
    ),
    "booleans-added-as-integers": Shown(
        lambda x, at, source: torch.index_add(x, 0, at, source, alpha=-1),
        (torch.tensor([True, False]), torch.tensor([0, 1]), torch.tensor([True, True])),
    ),
    "hardtanh-gradient-as-a-product": Shown(
        ATEN.hardtanh_backward, (numbers(INF, 2, 3), numbers(9, 0.5, 1), -1.0, 1.0)
    ),
    "bias-of-a-variance-that-overflows": Shown(
        torch.nn.functional.batch_norm,
        (torch.tensor([[65504.0], [-65504.0]]).half(), None, None, None, torch.tensor([3.0]).half(), True),
    ),
    "no-variance-and-no-eps": Shown(
        lambda *given: torch.native_batch_norm(*given, None, None, True, 0.1, 0.0)[0],
        (torch.tensor([[2.0, 1], [2, 3]]), None, numbers(7, 8)),
    ),
    "nan-counts-as-a-difference": Shown(
        ATEN._cdist_forward, (numbers(1, NAN).view(1, 2), numbers(1, 2).view(1, 2), 0.0, None)
    ),
    "results-left-as-they-were": Shown(
        lambda x, at, *given: ATEN.nll_loss_forward.output(x, at, None, 0, -9, output=given[0], total_weight=given[1]),
        (numbers(1, 2, 3, 4).view(2, 2), torch.tensor([0, 1]), numbers(8, 9), torch.tensor(0.0)),
    ),
    "info-is-two": Shown(lambda x: torch.linalg.lu_factor_ex(x)[2], (torch.diag(numbers(1, 1, 0)),)),
    "info-left-unwritten": Shown(
        lambda x: (torch.linalg.lu_factor_ex(x)[2], x.sum()),
        (torch.zeros(3, 0, 5),),
        device=lambda x: (torch.tensor([7, 0, 8], dtype=torch.int32), x.sum()),
    ),
    "edges-without-weight": Shown(
        ATEN._upsample_bilinear2d_aa,
        (torch.arange(10.0).where(torch.arange(10) != 4, NAN).view(1, 1, 10, 1).expand(1, 1, 10, 2), [8, 2], True),
    ),
    "total-weight-is-the-size": Shown(
        ATEN.nll_loss_forward, (numbers(1, 2, 3, 4).view(2, 2), torch.tensor([0, 1]), None, 0, -9)
    ),
    "addbmm-reads-what-it-wrote": Shown(
        torch.addbmm, (torch.tensor([3]), torch.tensor([[[1], [2]]]), torch.tensor([[[5, 7]]]))
    ),
    "learning-rate-read-as-a-float": Shown(
        lambda *lists: ATEN._fused_adamw.tensor_lr(
            *([tensor] for tensor in lists),
            [],
            [torch.tensor(1.0)],
            lr=torch.tensor(0.5, dtype=torch.bfloat16),
            **ADAM,
        ),
        tuple(numbers(1, 2, 3) for _ in range(4)),
    ),
    "no-matrix-leaves-zero": Shown(torch.addbmm, (numbers(3, 4), torch.zeros(0, 1, 2), torch.zeros(0, 2, 2))),
    "maxima-found-again": Shown(
        ATEN.max_pool2d_with_indices_backward,
        (
            numbers(5).view(1, 1, 1),
            numbers(1, 2).view(1, 1, 2),
            [1, 2],
            [1, 2],
            [0, 0],
            [1, 1],
            False,
            torch.zeros(1, 1, 1).long(),
        ),
    ),
    "gradients-in-the-dtype-of-the-input": Shown(
        lambda grad, input, out: ATEN.replication_pad2d_backward.grad_input(grad, input, [1, 0, 0, 0], grad_input=out),
        (torch.arange(1.0, 7).view(1, 1, 3, 2), torch.ones(1, 1, 3, 1).half(), torch.zeros(1, 1, 3, 1)),
    ),
    "parameters-read-in-another-dtype": Shown(
        ATEN.native_layer_norm, (numbers(1, 2, 4).half().view(1, 3), [3], numbers(1.1, 2.3, 3.7), None, 1e-5)
    ),
    "cholesky-of-complex-numbers-as-two": Shown(
        lambda x: torch.linalg.cholesky_ex(x)[0], (torch.tensor([[4, 1j, 1], [-1j, 5, 2], [1, 2, 6]]),)
    ),
    "first-system-alone": Shown(lambda *of: torch.linalg.solve(*of), (torch.eye(2).expand(3, 2, 2), numbers(3, 4))),
    "products-beyond-a-counter": Shown(
        torch.nn.functional.linear, (torch.arange(65537.0).view(-1, 1, 1), numbers(2).view(1, 1), numbers(7))
    ),
    "gradients-over-remaining-images": Shown(
        lambda *of: ATEN.convolution_backward(*of, None, [1], [0], [1], False, [0], 1, [False, True, False])[1],
        (torch.ones(65538, 1, 1), torch.ones(65538, 1, 1), torch.ones(1, 1, 1)),
    ),
    "inputs-multiplied-by-zero": Shown(
        lambda *of: torch.baddbmm(*of, beta=0),
        (numbers(NAN, 1).view(1, 1, 2), torch.ones(1, 1, 1), torch.ones(1, 1, 2)),
    ),
    "products-of-long-rows": Shown(torch.bmm, (torch.ones(1, 16, 32767), torch.ones(1, 32767, 16))),
    "first-of-a-storage": Shown(torch.mul, (numbers(1, 2), numbers(9, 3)[1])),
    "gradients-of-linear-without-conjugate": Shown(
        torch.nn.functional.linear,
        tuple(torch.tensor(values, requires_grad=True) for values in ([[1 + 1j, 2j]], [[3j, 1 + 2j]])),
        differentiable=True,
    ),
    "variances-stay-complex": Shown(torch.std, (torch.empty(0, dtype=torch.complex64),), form=True),
    "rows-with-nan-last": Shown(
        lambda x: ATEN.unique_dim(x, 1, True, True, True),
        (torch.tensor([[NAN, 1, 0, 1], [0, 1, NAN, 1]]),),
    ),
    "log-of-one-less": Shown(
        lambda *given: ATEN.binary_cross_entropy(*given, None, 0),
        (numbers(0.0643, 0.9).bfloat16(), numbers(0, 1).bfloat16()),
    ),
    "means-of-a-batch-rounded-first": Shown(
        lambda *given: torch.native_batch_norm(*given)[0],
        (numbers(4000.1, 4000.3, 4000.9).view(3, 1), None, None, None, None, True, 0.1, 1e-5),
        moves=True,
    ),
    "magnitudes-of-elements": Shown(
        torch._weight_norm, (numbers(1, 2, 3, 4).view(2, 2), numbers(5, 6, 7, 8).view(2, 2))
    ),
    "statistics-left-empty": Shown(
        lambda x, *given: ATEN.native_batch_norm.out(
            x, None, None, *given[:2], False, 0.1, 1e-5, out=given[2], save_mean=given[3], save_invstd=given[4]
        )[1:],
        (torch.ones(3, 1), *(torch.ones(1) for _ in range(2)), torch.ones(3, 1), torch.ones(1), torch.ones(1)),
        form=True,
    ),
    "deviations-of-a-batch-without-sign": Shown(
        lambda x, *statistics: ATEN.native_batch_norm_backward(x * x, x, *statistics, True, 1e-5, [True] * 3)[0],
        (numbers(1, 2, 5, 3).view(2, 2), None, None, None, numbers(3, 2), numbers(-2, 1)),
    ),
    "parts-of-a-sum-overflow": Shown(torch.nansum, (torch.ones(2**18).half() - 2 * (torch.arange(2**18) % 2).half(),)),
    "floats-reduced-as-integers": Shown(torch.prod, (numbers(INF, 1),), {"dtype": torch.int64}),
    "ranges-between-floats": Shown(torch.range, (-1.5, 0.5), {"dtype": torch.int8}, form=True),
    "powers-of-floats-into-an-output": Shown(
        lambda exponent: torch.pow(2, exponent, out=torch.empty(2).half()), (torch.tensor([3, -1]),)
    ),
    "products-of-a-batch-rounded": Shown(
        lambda *inputs: torch.addbmm(*(values.bfloat16() for values in inputs)),
        (numbers(-100, 0).view(1, 2), numbers(1.0078125).view(1, 1, 1), numbers(100, 1).view(1, 1, 2)),
    ),
    "results-conjugated": Shown(
        torch.pow,
        (torch.tensor([1 + 2j, 4]), 2),
        device=lambda base, exponent: torch.pow(base, exponent).conj().resolve_conj(),
    ),
    "subnormals-count-as-zero": Shown(torch.gt, (numbers(1, 1e-40), numbers(0, 0))),
}


def trial_of(
    played: Any,
    shown: Shown,
    corrupt: Callable[[Tensor], Tensor] = lambda result: result,
    prediction: Prediction | None = None,
) -> Trial:
    """A judged case; the device has the defect that is shown, and its first result is corrupted."""
    prediction = prediction or next(BY_NAME[name] for name, example in SHOWN.items() if example is shown)
    register()  # the CPU's kernels that are mended for the reference

    def faulty(*args: Any, **kwargs: Any) -> Any:
        run = 1 if shown.moves else prediction.alternatives - 1
        with prediction.in_place(), Calls(prediction.models, Ulp(run, moves=shown.moves)):
            result = (shown.device or shown.call)(*args, **kwargs)
        if prediction.name == "subnormals-count-as-zero":
            with subnormals_flushed():
                result = shown.call(*args, **kwargs)
        return map_leaves(lambda leaf: corrupt(leaf) if isinstance(leaf, Tensor) else leaf, result)

    case = Case(played.does(shown.call, faulty), shown.args, shown.kwargs, differentiable=shown.differentiable)
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    return trials[0]


def corrupted(index: int) -> Callable[[Tensor], Tensor]:
    """Puts a garbage value in place of one element."""

    def corrupt(result: Tensor) -> Tensor:
        garbage = result.detach().clone()
        value: complex = 77 if not garbage.is_floating_point() else 12345.678
        garbage.view(-1)[index] = 12345.678 - 7j if garbage.is_complex() else value
        return garbage if garbage.dtype is not torch.bool else garbage.logical_not()

    return corrupt


def test_every_prediction_is_shown() -> None:
    assert sorted(SHOWN) == sorted(BY_NAME)
    assert len(BY_NAME) == len(EVERY)
    assert not [name for name in BY_NAME if TOGETHER in name or name == ROUNDING]


@pytest.mark.parametrize("name", SHOWN)
def test_a_case_fits_the_prediction_of_its_defect(played: Any, name: str) -> None:
    shown = SHOWN[name]
    trials = (
        trial_of(played, replace(shown, args=args), prediction=BY_NAME[name]) for args in (shown.args, *shown.others)
    )
    trial = next((trial for trial in trials if trial.differs_in_values or trial.differs_in_form), None)
    assert trial is not None
    assert (trial.differs_in_values, trial.differs_in_form) == (not shown.form, shown.form)
    assert name in fitting_predictions(trial, EVERY)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("index", [0, -1])
def test_another_value_fits_nothing(played: Any, name: str, index: int) -> None:
    trial = trial_of(played, SHOWN[name], corrupted(index))
    assert set(fitting_predictions(trial, EVERY)) <= {ROUNDING}


@pytest.mark.parametrize(("second", "fits"), [(0.0, True), (-0.0, False)])
def test_the_sign_of_a_zero_is_predicted(played: Any, second: float, fits: bool) -> None:
    def device(grad: Tensor, input: Tensor, lower: float, upper: float) -> Tensor:
        return numbers(-0.0, second)

    call = played.does(ATEN.hardtanh_backward, device)
    case = Case(call, (numbers(-1, 3), numbers(9, 7), -1.0, 1.0), entry="hardtanh_backward")
    trials: list[Trial] = []
    outcome = judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert outcome.message.startswith("the sign of zero")
    assert ("hardtanh-gradient-as-a-product" in fitting_predictions(trials[0], EVERY)) is fits


def test_adaptive_windows_of_a_graph_keep_nan(played: Any) -> None:
    call = played.does(torch.nn.functional.adaptive_max_pool2d, lambda x, _: torch.max_pool2d(x, (1, 3), 1))
    case = Case(call, (torch.tensor([[[[1, 2, NAN, 4, 5]]]]), (1, 3)), entry="nn.functional.adaptive_max_pool2d")
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    fits = fitting_predictions(trials[0], EVERY)
    assert [name for name in fits if "windows" in name] == ["adaptive-windows-with-nan"]


@pytest.mark.parametrize(("added", "fits"), [(0, True), (1, False)])
def test_adaptive_windows_of_a_larger_result_leave_places_out(played: Any, added: float, fits: bool) -> None:
    call = played.does(torch.nn.functional.adaptive_max_pool2d, lambda x, _: torch.max_pool2d(x, 2, 1) + added)
    case = Case(call, (torch.arange(9.0).view(1, 1, 3, 3), (4, 4)), entry="nn.functional.adaptive_max_pool2d")
    trials: list[Trial] = []
    outcome = judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert outcome.message == "shape is [1, 1, 2, 2], not [1, 1, 4, 4]"
    assert ("adaptive-windows-of-one-size" in fitting_predictions(trials[0], EVERY)) is fits


def test_calls_inside_of_a_convolutions_gradient_are_not_looked_at() -> None:
    """There are four for each image."""
    weight = torch.ones(1, 1, 1, requires_grad=True)
    with torch.backends.mkldnn.flags(enabled=False), Calls({}, Ulp()) as calls:
        torch.autograd.grad(torch.conv1d(torch.ones(3, 1, 1), weight), weight, torch.ones(3, 1, 1))
    assert "aten::convolution_backward" in calls.names
    assert "aten::select" not in calls.names


def test_memory_that_a_model_writes_around_a_view_is_compared(played: Any) -> None:
    """Rows in the memory of a transposed out= with gaps: beside its elements, too."""

    def into(out: Tensor, input: Tensor, places: Tensor) -> None:
        torch.index_select(input, 0, places, out=out)

    def in_rows(out: Tensor, input: Tensor, places: Tensor) -> None:
        with Calls(BY_NAME["results-in-rows"].models, Ulp()):
            into(out, input, places)
        out.as_strided((1,), (1,), 1).add_(moved)

    args = (torch.zeros(4, 4)[:2, :2], numbers(1, 2, 3, 4).view(2, 2), torch.tensor([1, 0]))
    for moved in (0.0, 7.0):
        trials: list[Trial] = []
        judge.judge(Case(played.does(into, in_rows), args), played, 0, "example", on_executed=trials.append)
        assert trials[0].differs_in_values
        assert ("results-in-rows" in fitting_predictions(trials[0], EVERY)) == (moved == 0)


@pytest.mark.parametrize("moved", [0.0, 7.0])
def test_strides_of_an_output_are_as_a_model_changes_them(played: Any, moved: float) -> None:
    def average(input: Tensor, out: Tensor) -> Tensor:
        return torch._C._nn.avg_pool2d(input, 2, out=out)

    def restrided(input: Tensor, out: Tensor) -> Tensor:
        with Calls(BY_NAME["outputs-made-contiguous"].models, Ulp()):
            average(input, out)
        return out.add_(moved)

    trials: list[Trial] = []
    case = Case(played.does(average, restrided), (torch.ones(2, 1, 4, 4), torch.zeros(4, 1, 2, 2)[::2]))
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    fits = fitting_predictions(trials[0], EVERY)
    assert ("outputs-made-contiguous" in fits) == (moved == 0), (trials[0].differs_in_values, trials[0].differs_in_form)


def test_bilinear_interpolation_to_the_same_size_spreads_nan_in_both_dimensions(played: Any) -> None:
    name, x = "neighbours-of-weight-zero", torch.arange(9.0).view(1, 1, 3, 3)
    x[0, 0, 1, 1] = NAN
    for corrupt, fits in ((lambda result: result, True), (corrupted(0), False)):
        trial = trial_of(played, Shown(ATEN.upsample_bilinear2d, (x, [3, 3], True)), corrupt, BY_NAME[name])
        assert trial.differs_in_values
        assert (name in fitting_predictions(trial, EVERY)) == fits


def test_an_average_leaves_an_output_of_another_shape(played: Any) -> None:
    shown = Shown(
        lambda x, out: torch._C._nn.adaptive_avg_pool2d(x, 1, out=out), (torch.ones(1, 2, 2), numbers(8, 9)), form=True
    )
    for corrupt, fits in ((lambda result: result, True), (corrupted(0), False)):
        trial = trial_of(played, shown, corrupt, BY_NAME["results-left-as-they-were"])
        assert trial.differs_in_form
        assert ("results-left-as-they-were" in fitting_predictions(trial, EVERY)) == fits


def test_a_part_that_is_zero_on_both_sides_may_have_any_sign(played: Any) -> None:
    model = BY_NAME["complex-arcsines-cancel"].models["aten::asin"]
    case = Case(played.does(torch.asin, lambda x: -model(Ulp(), x).conj()), (torch.tensor([3e-3j]),), entry="asin")
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert "complex-arcsines-cancel" in fitting_predictions(trials[0], EVERY)


# Models by what 2.13.0's own host code gives for the call, or would give with another run's memory.
GIVEN = {
    "masks-of-the-gradients-shape": (
        lambda: ATEN.native_dropout_backward(numbers(1, 2, 3, 4).view(2, 2), torch.tensor([True, False]), 2.0),
        [[2, 0], [0, 0]],
    ),
    "neighbours-past-the-next": (
        lambda: ATEN.upsample_bilinear2d.vec(numbers(0, 1, 0).view(1, 1, 3, 1), [83, 1], True, None)[0, 0, 40:43, 0],
        [0.9756, 0, 0.9756],
    ),
    "masks of a gradient that the mask expands": (
        lambda: ATEN.native_dropout_backward(numbers(1, 2, 3), torch.tensor([[True] * 3, [False] * 3]), 2.0),
        [2, 4, 6],
    ),
    "results-in-channels-last": (
        lambda: _batch_norm_into(torch.zeros(1, 2, 2, 2)),
        [[[[7.3167, 15.9751], [9.1056, 18.6584]], [[10.8944, 21.3416], [12.6833, 24.0249]]]],
    ),
    "bias-of-a-variance-that-overflows": (
        lambda: _batch_norm(numbers(65504, 1, -65504, 3).half().view(2, 2), 1e-5),
        [[10, 17], [10, 23]],
    ),
    "no-variance-and-no-eps": (lambda: _batch_norm(numbers(2, 1, 2, 3).view(2, 2), 0.0), [[NAN, 17], [NAN, 23]]),
    "rows-with-nan-last": (
        lambda: ATEN.unique_dim(numbers(NAN, 0, 1, 1, 0, NAN, 1, 1).view(4, 2), 0)[0],
        [[0, NAN], [1, 1], [NAN, 0]],
    ),
    "log-of-one-plus-exp": (
        lambda: ATEN.softplus_backward(numbers(1, 1, 1).half(), numbers(8.9, 1, 11).half(), 2.0, 20.0),
        [NAN, 0.8809, 1],
    ),
    "log-of-one-less": (
        lambda: ATEN.binary_cross_entropy(numbers(0.0643).bfloat16(), numbers(0).bfloat16(), None, 0),
        [0.0645],
    ),
}


def _batch_norm(input: Tensor, eps: float, **out: Any) -> Tensor:
    weight, bias = numbers(2, 3).to(input.dtype), numbers(10, 20).to(input.dtype)
    return torch.native_batch_norm(input, weight, bias, None, None, True, 0.1, eps, **out)[0]


def _batch_norm_into(out: Tensor) -> Tensor:
    input = torch.arange(8.0).view(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    return _batch_norm(input, 1e-5, out=(out, torch.zeros(2), torch.zeros(2)))


@pytest.mark.parametrize("name", GIVEN)
def test_models_agree_with_the_release(name: str) -> None:
    call, given = GIVEN[name]
    prediction = BY_NAME.get(name, BY_NAME["masks-of-the-gradients-shape"])
    with Calls(prediction.models, Ulp()):
        result = call()
    assert torch.allclose(result.float(), torch.tensor(given, dtype=torch.float32), atol=1e-4, equal_nan=True)
    assert list(result.shape) == list(torch.tensor(given).shape)


@pytest.mark.parametrize(("moves", "runs"), [(False, [1, 1]), (True, [7, 7])])
def test_runs_that_would_repeat_another_are_not_made(played: Any, moves: bool, runs: list[int]) -> None:
    seen: list[Ulp] = []

    def twice(ulp: Ulp, input: Tensor) -> Tensor:
        seen.append(ulp)
        return ulp(input * 2) if moves else input * 2

    prediction = Prediction("twice", {"aten::erf": twice})
    case = Case(played.does(torch.erf, lambda x: x * 3), (numbers(1, 2),), differentiable=False)
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert fitting_predictions(trials[0], (prediction,)).keys() == {ROUNDING}
    assert [len({ulp.run for ulp in seen}), len(seen) // 2] == runs


def test_a_model_of_a_shape_needs_no_gradient_of_it(played: Any) -> None:
    shown = Shown(
        ATEN.native_dropout_backward,
        (numbers(1, 2, 3).requires_grad_(), torch.tensor([[True] * 3, [False] * 3]), 2.0),
        differentiable=True,
    )
    trial = trial_of(played, shown, prediction=BY_NAME["masks-of-the-gradients-shape"])
    assert trial.differs_in_form
    assert trial.cpu is not None
    assert trial.cpu.differentiable
    assert fitting_predictions(trial, EVERY) == {"masks-of-the-gradients-shape": 0.0}


def test_masked_gradients_of_dropout() -> None:
    models = BY_NAME["masks-of-the-gradients-shape"].models
    with Calls(models, Ulp(1)):
        kept = ATEN.native_dropout_backward(numbers(1, 2, 3), torch.tensor([True]), 2.0)
        same = ATEN.native_dropout_backward(numbers(NAN, 2), torch.tensor([False, True]), 2.0)
    assert kept.tolist() == [2, 4, 6]
    assert same.isnan().tolist() == [True, False]  # as the CPU: another model's defect


def test_a_number_is_that_of_an_earlier_call_with_the_same_six_decimals() -> None:
    with Calls(BY_NAME["numbers-alike-in-six-decimals"].models, Ulp()):
        results = [ATEN.addmm(torch.zeros(1, 1), *[torch.ones(1, 1)] * 2, alpha=n).item() for n in (3e-7, 1e-7, 2e-6)]
        padded = [torch.constant_pad_nd(torch.ones(1), [1, 0], number)[0].item() for number in (1, 5e-7, 4e-7, 6e-7)]
    assert results == pytest.approx([3e-7, 3e-7, 2e-6])
    assert padded == pytest.approx([1, 5e-7, 5e-7, 6e-7])


def test_a_model_gives_a_given_output_another_shape(played: Any) -> None:
    given = [torch.ones(2, 4), *(torch.ones(2, dtype=torch.int64) for _ in range(3))]
    outputs = {f"out{place}": output for place, output in enumerate(given)}
    args = (torch.eye(4), torch.tensor([0, 1, 2]), torch.tensor([0, 1]))
    shown = Shown(ATEN._embedding_bag.out, args, outputs)
    trial = trial_of(played, shown, prediction=BY_NAME["bag-sizes-always-returned"])
    assert fitting_predictions(trial, EVERY) == {"bag-sizes-always-returned": 0.0}
    with Calls(BY_NAME["bag-sizes-always-returned"].models, Ulp()):
        ATEN._embedding_bag.out(*args, **outputs)
    assert given[2].tolist() == [1, 2]
    assert given[3].shape == (0,)


def test_the_parameters_of_a_step_are_in_the_given_output() -> None:
    lists = [[numbers(value)] for value in (1, 2, 3, 4)]
    out, rate = [numbers(9)], torch.tensor(0.5, dtype=torch.float64)  # its first four bytes are zero
    with Calls(BY_NAME["learning-rate-read-as-a-float"].models, Ulp()):
        ATEN._fused_adam.tensor_lr_out(*lists, [], [numbers(1)], lr=rate, out=out, **ADAM)
    assert (out[0].item(), lists[1][0].item()) == (1, 2)


def test_a_model_sees_the_old_output_of_an_accumulating_overload() -> None:
    shown = SHOWN["combinations-of-complex-numbers"]
    out = torch.ones(1, 1, dtype=torch.complex64)
    with Calls(BY_NAME["combinations-of-complex-numbers"].models, Ulp()):
        ATEN._compute_linear_combination.out(*shown.args, out=out)
    assert out.item() == 1 + (1 + 1j) * (1 + 1j) + 2 * (2 - 1j)


def test_models_take_vectors_and_named_arguments() -> None:
    with Calls(BY_NAME["rows-with-nan-last"].models, Ulp()):
        assert str(ATEN.unique_dim(numbers(1, NAN, 1, NAN), 0)[0].tolist()) == "[1.0, nan, nan]"
    matrices, sides = torch.eye(2).expand(3, 2, 2), numbers(3, 4).view(1, 2)
    with Calls(BY_NAME["first-system-alone"].models, Ulp()):
        solution = ATEN._linalg_solve_ex(matrices, sides, left=False)[0]
    assert solution.tolist() == [[[3, 4]], [[0, 0]], [[0, 0]]]


@pytest.mark.parametrize(("size", "fits"), [(0, True), (3, False)])
def test_a_result_of_another_shape_fits_a_model_of_that_shape(played: Any, size: int, fits: bool) -> None:
    def device(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.clamp(max=0) - (1 + (-x.abs()).exp()).log(), torch.zeros(size)

    case = Case(played.does(ATEN.log_sigmoid_forward, device), (numbers(1, 12, 30),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert ("log-of-one-plus-exp" in fitting_predictions(trials[0], EVERY)) is fits


def test_the_largest_rounding_error_of_all_results_is_kept(played: Any) -> None:
    def device(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * (1 + 2**-14), x * (1 + 2**-12)

    case = Case(played.does(lambda x: (x * 1, x * 1), device), (numbers(1, 2),))
    trials: list[Trial] = []
    outcome = judge.judge(case, played, 0, "example", on_executed=trials.append)
    fits = fitting_predictions(trials[0], ())
    assert fits[ROUNDING] == pytest.approx(4 * (outcome.max_error or 0.0), rel=0.1)


def test_rounding_is_measured_against_the_cpu_where_float64_fails(played: Any) -> None:
    def right(x: Tensor) -> Tensor:
        if x.dtype is torch.float64:
            raise RuntimeError("no float64")
        return x * 1

    case = Case(played.does(right, lambda x: x * (1 + 2**-12)), (numbers(1, 2),))
    trials: list[Trial] = []
    outcome = judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert fitting_predictions(trials[0], ()) == {ROUNDING: outcome.max_error}


@pytest.mark.parametrize("wrong", [NAN, INF])
def test_infinity_and_nan_are_not_rounding_errors(played: Any, wrong: float) -> None:
    case = Case(played.does(lambda x: x * 1, lambda x: x * numbers(1, wrong)), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert fitting_predictions(trials[0], ()) == {}


def test_models_explain_a_case_together_where_one_is_not_enough(played: Any) -> None:
    def erfc(ulp: Ulp, input: Tensor) -> Tensor:
        return torch.full_like(input, 7.0)

    def neg(ulp: Ulp, input: Tensor) -> Tensor:
        return torch.full_like(input, 5.0)

    models = (
        Prediction("a", {"aten::erfc": erfc}),
        Prediction("b", {"aten::neg": neg}),
        Prediction("c", {"aten::neg": erfc}),
    )

    def call(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.special.erfc(x), torch.neg(x)

    def faulty(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full_like(x, 7.0), torch.full_like(x, 5.0)

    case = Case(played.does(call, faulty), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert [name for name in fitting_predictions(trials[0], models) if name != ROUNDING] == ["a+b"]


def test_each_model_that_can_be_needed_is_in_a_set(played: Any) -> None:
    """Which of two models is meant, the kernels that were launched decide later."""

    def of(value: float) -> Callable[..., Tensor]:
        return lambda ulp, input: torch.full_like(input, value)

    models = (
        Prediction("a", {"aten::erfc": of(7.0)}),
        Prediction("b", {"aten::neg": of(5.0)}),
        Prediction("c", {"aten::neg": of(5.0)}),
    )

    def call(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.special.erfc(x), torch.neg(x)

    case = Case(played.does(call, lambda x: (torch.full_like(x, 7.0), torch.full_like(x, 5.0))), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert [name for name in fitting_predictions(trials[0], models) if name != ROUNDING] == ["a+c", "a+b"]


def test_models_that_say_nothing_about_a_case_share_all_but_one_run(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most models of an overload are for another dtype. They must not cost a run for each move of its results."""
    runs, comparisons = [0], [0]

    def call(x: Tensor) -> Tensor:
        runs[0] += 1
        return torch.abs(x)

    def counted(*args: Any, **kwargs: Any) -> Any:
        comparisons[0] += 1
        return compare(*args, **kwargs)

    monkeypatch.setattr(agreement, "compare", counted)
    case = Case(played.does(call, lambda x: torch.abs(x) + 1), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    models = [Prediction(name, {"aten::abs": lambda ulp, input: None}) for name in "abcd"]
    costs = []
    for tried in (models[:1], models):
        runs[0] = comparisons[0] = 0
        assert not fitting_predictions(trials[0], tried).keys() - {ROUNDING}
        costs.append((runs[0], comparisons[0]))
    assert costs[1] == (costs[0][0] + 3, costs[0][1])


def test_a_model_runs_once_where_that_run_is_enough(played: Any) -> None:
    runs = [0]

    def erfc(ulp: Ulp, x: Tensor) -> Tensor:
        runs[0] += 1
        return BY_NAME["erfc-as-one-less-erf"].models["aten::erfc"](ulp, x)

    trial = trial_of(played, SHOWN["erfc-as-one-less-erf"])
    assert fitting_predictions(trial, [Prediction("a", {"aten::erfc": erfc})]).keys() >= {"a"}
    assert runs == [1]


def test_subnormals_are_flushed_in_the_formula_that_the_cpu_takes(played: Any) -> None:
    """Inside a dispatch mode the gradient of prod multiplies the other numbers; outside it divides the product."""

    class Prod(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x, x.prod(0))
            return x.prod(0)

        @staticmethod
        def backward(ctx: Any, cotangent: Tensor) -> Tensor:
            x, product = ctx.saved_tensors
            with subnormals_flushed():
                return cotangent * (product / x)

    x = torch.tensor([1e-30, 1.3e-8, 0.01], requires_grad=True)
    trials: list[Trial] = []
    case = Case(played.does(lambda x: x.prod(0), Prod.apply), (x,), differentiable=True)
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert "subnormals-count-as-zero" in fitting_predictions(trials[0], PREDICTIONS)


def test_a_model_that_raises_is_named_with_the_dtype(played: Any) -> None:
    trial = trial_of(played, SHOWN["erfc-as-one-less-erf"])
    raising = Prediction("a", {"aten::erfc": lambda ulp, x: math.sqrt(-1) * x})
    for prediction in (raising, Prediction("b", where=lambda values, right, exact: values.fill_(math.sqrt(-1)))):
        with pytest.raises(ModelError, match=f"'{prediction.name}' of torch.float32 .*raises ValueError"):
            fitting_predictions(trial, [prediction])


def test_a_model_whose_numbers_an_operator_refuses_does_not_fit(played: Any) -> None:
    case = Case(played.does(lambda x: torch.linalg.cholesky(x.erfc().diag()), lambda x: x.diag()), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    refused = Prediction("a", {"aten::erfc": lambda ulp, x: x - 9})
    assert fitting_predictions(trials[0], [refused]).keys() <= {ROUNDING}


def test_a_case_that_no_dispatch_mode_can_run_fits_nothing(played: Any) -> None:
    def call(x: Tensor) -> Tensor:
        if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            raise AttributeError("no __qualname__")
        return x.erfc()

    case = Case(played.does(call, lambda x: x + 1), (numbers(1, 2),))
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert fitting_predictions(trials[0], [BY_NAME["erfc-as-one-less-erf"]]).keys() <= {ROUNDING}


@pytest.mark.parametrize("arguments", [{}, {"rounding_mode": "trunc"}])
def test_a_quotient_that_is_not_rounded_down_has_no_model(played: Any, arguments: dict[str, str]) -> None:
    case = Case(
        played.does(torch.div, lambda x, y, **_: torch.floor_divide(x, y)), (numbers(7, 9), numbers(-2, 2)), arguments
    )
    trials: list[Trial] = []
    judge.judge(case, played, 0, "example", on_executed=trials.append)
    assert fitting_predictions(trials[0], [BY_NAME["quotient-rounded-down"]]).keys() <= {ROUNDING}


def test_prelu_writes_rows(played: Any) -> None:
    def in_rows(input: Tensor, weight: Tensor) -> Tensor:
        return (input.clamp(min=0) + weight * input.clamp(max=0)).contiguous()

    args = (numbers(1, -1, 2, -2, 3, -3).view(2, 3).t(), torch.tensor(INF))
    trials: list[Trial] = []
    judge.judge(
        Case(played.does(torch.prelu, in_rows), args, elementwise=True), played, 0, "example", on_executed=trials.append
    )
    assert "prelu-as-a-sum" in fitting_predictions(trials[0], EVERY)


def test_a_result_is_written_into_a_complex_output_as_real_numbers(played: Any) -> None:
    def into(out: Tensor, matrix: Tensor, sides: Tensor) -> None:
        torch.linalg.solve_triangular(matrix, sides, upper=True, out=out)

    def as_real_numbers(out: Tensor, matrix: Tensor, sides: Tensor) -> None:
        solution = torch.linalg.solve_triangular(matrix, sides, upper=True).flatten() + moved
        torch.view_as_real(storage_of(out)).flatten()[out.storage_offset() :][: len(solution)] = solution

    args = (torch.zeros(4, 3).cfloat()[1:3, :2], torch.tensor([[2.0, 1], [0, 4]]), torch.tensor([[2.0, 6], [4, 8]]))
    for moved in (0.0, 7.0):
        trials: list[Trial] = []
        judge.judge(Case(played.does(into, as_real_numbers), args), played, 0, "example", on_executed=trials.append)
        assert ("results-in-rows" in fitting_predictions(trials[0], EVERY)) == (moved == 0)


def test_a_gradient_of_a_maximum_is_written_in_rows(played: Any) -> None:
    geometry = [2, 2], [1, 1], [0, 0], [1, 1], False
    input = numbers(1, 9, 2, 3, 4, 5, 8, 6, 7).view(1, 1, 3, 3)
    places = ATEN.max_pool2d_with_indices(input, *geometry)[1]

    def into(out: Tensor) -> None:
        ATEN.max_pool2d_with_indices_backward(torch.ones(1, 1, 2, 2), input, *geometry, places, grad_input=out)

    def in_rows(out: Tensor) -> None:
        rows = torch.zeros(input.shape)
        into(rows)
        out.as_strided((9,), (1,)).copy_(rows.flatten() + moved)

    for moved in (0.0, 7.0):
        trials: list[Trial] = []
        case = Case(played.does(into, in_rows), (torch.zeros(input.shape).mT,))
        judge.judge(case, played, 0, "example", on_executed=trials.append)
        assert ("maxima-found-again" in fitting_predictions(trials[0], EVERY)) == (moved == 0)
