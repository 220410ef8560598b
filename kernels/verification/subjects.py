"""What is verified of each family: calls, dtypes and inputs. A subject stands for one or more operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REAL = (*FLOATING, *INTEGERS, torch.bool)

Random = Callable[..., torch.Tensor]
Inputs = Callable[[torch.dtype], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True)
class Subject:
    """One call to verify.

    Attributes:
        name: what is called, for people.
        operators: those of which the call runs every kernel, forward or backward.
        call: called with the inputs, on the CPU and on mps; returns a tensor or several.
        inputs: yields the positional arguments of cases for a dtype: tensors on the CPU, numbers, lists of tensors.
        dtypes: of the inputs.
        gradients: positions of the arguments that get gradients; empty where there are none.
        expands: whether arguments may be expanded tensors; not where one is written.
        reference: the dtype of the CPU's floating computation.
        tolerance: relative and absolute, at float32; those of half and bfloat16 follow from their precision.
        gradient_factor: how much wider the latter are for gradients, which torch composes of several rounded operators.
    """

    name: str
    operators: tuple[str, ...]
    call: Callable[..., Any]
    inputs: Inputs
    dtypes: tuple[torch.dtype, ...] = FLOATING
    gradients: tuple[int, ...] = ()
    expands: bool = True
    reference: torch.dtype = torch.float64
    tolerance: tuple[float, float] = (1e-5, 1e-5)
    gradient_factor: int = 4


_aten = torch.ops.aten
_functional = torch.nn.functional
_SHAPES = ((7, 5), (3, 4, 6), (129,), (), (0, 3))
_NAN, _INFINITY = float("nan"), float("inf")


def _values(shape: Sequence[int], dtype: torch.dtype, scale: float = 2.0) -> torch.Tensor:
    """Numbers from a fixed seed: normal for floating and complex dtypes, -3 to 3 (0 to 6, 0 and 1) for the others."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    if dtype.is_complex:
        parts = torch.randn((*shape, 2), generator=generator) * scale
        return torch.view_as_complex(parts)
    if dtype.is_floating_point:
        return (torch.randn(tuple(shape), generator=generator) * scale).to(dtype)
    low, high = (0, 2) if dtype == torch.bool else (0, 7) if dtype == torch.uint8 else (-3, 4)
    return torch.randint(low, high, tuple(shape), generator=generator).to(dtype)


def _integers(shape: Sequence[int], low: int, high: int) -> torch.Tensor:
    return torch.randint(low, high, tuple(shape), generator=torch.Generator().manual_seed(sum(shape)))


def _unary(
    *arguments: Any, special: Sequence[float] = (_NAN, _INFINITY, -_INFINITY, 0.0), scale: float = 2.0
) -> Inputs:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for shape in _SHAPES:
            yield _values(shape, dtype, scale), *arguments
        if dtype.is_floating_point:
            yield torch.tensor(special).to(dtype), *arguments

    return inputs


def _probabilities(*arguments: Any) -> Inputs:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for shape in _SHAPES:
            yield torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(dtype), *arguments
        yield torch.tensor([0.0, 1.0, -0.5, 1.5, _NAN]).to(dtype), *arguments

    return inputs


def _heaviside_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in _SHAPES:
        x = _values(shape, dtype)
        x = torch.where(_values(shape, torch.int64) == 0, torch.zeros_like(x), x)
        yield x, _values(shape, dtype)
        yield x, _values((), dtype)
    yield _values((4, 1), dtype), _values((1, 5), dtype)
    if dtype.is_floating_point:
        yield torch.tensor([_NAN, 0.0, 0.0]).to(dtype), torch.tensor([1.0, _NAN, _INFINITY]).to(dtype)


def _reduced_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 9), (4, 5, 6)):
        for dim in (0, -1):
            yield _values(shape, dtype), dim
    yield _values((), dtype), 0


def _ambiguous_rows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Rows for which the CPU may report any of several equal elements, so that gradients cannot be compared."""
    yield _values((5, 300), dtype), -1
    yield _values((300, 5), dtype), 0
    yield torch.tensor([[_NAN, 1.0, 1.0], [2.0, _NAN, 2.0], [_NAN, _NAN, _NAN]]).to(dtype), -1


def _mode(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values, and what stands at the indices: which of several equal elements is reported is not defined."""
    values, indices = torch.mode(x, dim, keepdim=True)
    return values, torch.gather(x, dim, indices) if x.dim() else values


def _whole_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 9), (), (3000,), (70, 90)):
        yield (_values(shape, dtype),)
    if dtype.is_floating_point:
        yield (torch.tensor([1.0, _NAN, 2.0]).to(dtype),)
        yield (torch.tensor([_INFINITY, -_INFINITY]).to(dtype),)


def _whole(reduce: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return reduce(x, out=torch.empty((), dtype=x.dtype, device=x.device))


def _margin_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, classes in ((5, 7), (3, 300)):
        x, target = _values((rows, classes), dtype), _integers((rows,), 0, classes)
        for reduction in ("none", "mean", "sum"):
            yield x, target, 1, 0.7, None, reduction
            yield x, target, 2, 1.0, _values((classes,), dtype).abs(), reduction
    yield _values((7,), dtype), torch.tensor(3), 1, 1.0, None, "none"
    yield _values((0, 7), dtype), _integers((0,), 0, 7), 1, 1.0, None, "sum"


def _multi_margin(x: torch.Tensor, target: torch.Tensor, p: int, margin: float, weight: Any, how: str) -> torch.Tensor:
    return _functional.multi_margin_loss(x, target, p, margin, weight, reduction=how)


def _multilabel_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, classes in ((5, 7), (3, 300)):
        target = torch.full((rows, classes), -1)
        for row in range(rows):
            count = (2 * row) % min(classes, 9)
            target[row, :count] = torch.randperm(classes, generator=torch.Generator().manual_seed(row))[:count]
        for reduction in ("none", "mean", "sum"):
            yield _values((rows, classes), dtype), target, reduction
    yield _values((4,), dtype), torch.tensor([2, 2, -1, 0]), "mean"


def _multilabel(x: torch.Tensor, target: torch.Tensor, how: str) -> torch.Tensor:
    return _functional.multilabel_margin_loss(x, target, reduction=how)


def _pool3d_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in ((1, 1, 2), (3, 1, 5), (5, 6, 7), (8, 4, 9)):
        yield _values((2, 3, 5, 6, 7), dtype), size
    yield _values((3, 5, 6, 7), dtype), (2, 2, 2)
    yield _values((1, 2, 20, 20, 20), dtype), (2, 2, 1)
    yield _values((0, 2, 4, 4, 4), dtype), (2, 2, 2)


def _pool2d_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in ((2, 3), (4, 4), (7, 5)):
        yield _values((2, 3, 5, 7), dtype), size
    yield _values((3, 11, 12), dtype), (3, 3)


def _max_pool3d(x: torch.Tensor, size: tuple[int, int, int]) -> Any:
    return _functional.adaptive_max_pool3d(x, size, return_indices=True)


def _fractional_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for window, size in (((2, 2), (4, 5)), ((3, 2), (5, 7)), ((4, 4), (1, 1))):
        samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(5)).to(dtype)
        yield _values((2, 3, 9, 11), dtype), window, size, samples
    yield _values((3, 9, 11), dtype), (2, 3), (4, 5), samples[:1]


def _fractional(x: torch.Tensor, window: Any, size: Any, samples: torch.Tensor) -> Any:
    return _functional.fractional_max_pool2d(x, window, size, return_indices=True, _random_samples=samples)


def _pdist_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((5, 3), (4, 100), (1, 3), (3, 0)):
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, _INFINITY):
            yield _values(shape, dtype), p
    yield torch.ones(4, 3, dtype=dtype), 2.0


def _renorm_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for columns in (5, 300):
        for norm in (0.0, 1.0, 2.0, 3.0, _INFINITY):
            yield _values((6, columns), dtype), torch.tensor([[3, 3, 1], [0, 5, 1]]), 1.5, norm


def _put_inputs(dtype: torch.dtype, accumulate: bool) -> Iterator[tuple[Any, ...]]:
    for shape in ((4, 5), (7, 2, 3)):
        x = _values(shape, dtype)
        indices = _integers((3, 8), -x.numel(), x.numel())
        if not accumulate:
            indices = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(1))[:12] - x.numel() // 2
        source = _values(indices.shape, dtype)
        if dtype == torch.int64:
            source += 2**40 + 7
        yield x, indices, source, accumulate
    yield x, indices[:0], source[:0], accumulate


def _take_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((4, 5), (7, 2, 3)):
        x = _values(shape, dtype)
        yield x, _integers((3, 4), -x.numel(), x.numel())
    yield x, _integers((0,), 0, 1)


def _rrelu(x: torch.Tensor, training: bool) -> tuple[torch.Tensor, ...]:
    """The result without training; with it, whether result and noise are what they claim to be."""
    if not training:
        return (_functional.rrelu(x, 0.125, 0.5, False),)
    noise = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    y = _aten.rrelu_with_noise.default(x, noise, 0.125, 0.5, True)
    leaks = x <= 0
    bounded = ((noise >= 0.125) & (noise <= 0.5)) == leaks
    return bounded, (noise == 1) == ~leaks, torch.isclose(y, x * noise, rtol=1e-2, equal_nan=True)


def _rrelu_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in _SHAPES:
        yield _values(shape, dtype), True
        yield _values(shape, dtype), False
    yield torch.tensor([_NAN, 0.0, _INFINITY]).to(dtype), True


def _adagrad_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    shapes = ((5, 7), (33,), (2, 3, 4), (0,), ())
    lists = [[_values(shape, dtype, scale) for shape in shapes] for scale in (1.0, 0.5)]
    sums = [_values(shape, dtype).abs() for shape in shapes]
    steps = [torch.tensor(3.0) for _ in shapes]
    yield (*lists, sums, steps, 0.1, 0.0, 0.0, False)
    yield (*lists, sums, steps, 0.1, 0.2, 0.1, True)
    yield (*lists, sums, steps, torch.tensor(0.1), 0.2, 0.1, False)


def _adagrad(
    parameters: Any, gradients: Any, sums: Any, steps: Any, lr: Any, decay: float, weight_decay: float, maximize: bool
) -> tuple[torch.Tensor, ...]:
    torch._fused_adagrad_(
        parameters,
        gradients,
        sums,
        steps,
        lr=lr,
        lr_decay=decay,
        weight_decay=weight_decay,
        eps=1e-8,
        maximize=maximize,
    )
    return (*parameters, *sums)


def _symmetric(shape: Sequence[int], dtype: torch.dtype, hermitian: bool) -> torch.Tensor:
    a = _values(shape, dtype)
    return a + (a.mH if hermitian else a.mT)


def _ldl_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for hermitian in (False, True):
        for shape in ((1, 1), (5, 5), (2, 3, 12, 12), (40, 40), (0, 0)):
            side = _values((*shape[:-1], 3), dtype)
            yield _symmetric(shape, dtype, hermitian), side, hermitian
        hollow = _symmetric((6, 6), dtype, hermitian)
        yield hollow - torch.diag(torch.diagonal(hollow)), _values((2, 6, 3), dtype), hermitian


def _ldl(a: torch.Tensor, side: torch.Tensor, hermitian: bool) -> tuple[torch.Tensor, ...]:
    """Factors, pivots, info, and the solution."""
    factors, pivots, info = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    return factors, pivots, info, torch.linalg.ldl_solve(factors, pivots, side, hermitian=hermitian)


def _qparams(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, enabled: torch.Tensor) -> Any:
    return _aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, zero, enabled, -5, 11)


def _fake_quantize(x: torch.Tensor) -> Any:
    return _aten.fake_quantize_per_tensor_affine_cachemask(x, 0.25, 3, -5, 11)


def _qparams_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for enabled in (0, 1):
        for shape in _SHAPES:
            zero = torch.tensor([3], dtype=torch.int32)
            yield _values(shape, dtype), torch.tensor([0.25]), zero, torch.tensor([enabled])


_FLOAT_ONLY = (torch.float32,)
_FAKE_QUANTIZE_INPUTS = _unary(special=(_NAN, 0.0, 100.0, -100.0))

SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "adaptive_avg_pool3d": (
        Subject(
            "adaptive_avg_pool3d",
            (
                "aten::_adaptive_avg_pool3d",
                "aten::adaptive_avg_pool3d",
                "aten::_adaptive_avg_pool3d_backward",
                "aten::adaptive_avg_pool3d_backward",
            ),
            _functional.adaptive_avg_pool3d,
            _pool3d_inputs,
            gradients=(0,),
        ),
        Subject(
            "adaptive_avg_pool2d of sizes that do not divide",
            ("aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward"),
            _functional.adaptive_avg_pool2d,
            _pool2d_inputs,
            gradients=(0,),
        ),
    ),
    "adaptive_max_pool3d": (
        Subject(
            "adaptive_max_pool3d",
            ("aten::adaptive_max_pool3d", "aten::adaptive_max_pool3d_backward"),
            _max_pool3d,
            _pool3d_inputs,
            gradients=(0,),
        ),
    ),
    "airy": (
        Subject(
            "special.airy_ai",
            ("aten::special_airy_ai",),
            torch.special.airy_ai,
            _unary(),
            (*FLOATING, *INTEGERS),
            # torch's own float64 is off by 3e-6 around -2.3.
            tolerance=(1e-5, 1e-5),
        ),
    ),
    "embedding_renorm": (
        Subject(
            "embedding_renorm_",
            ("aten::embedding_renorm_",),
            torch.embedding_renorm_,
            _renorm_inputs,
            (*FLOATING, torch.complex64),
            expands=False,
        ),
    ),
    "extremum": (
        Subject("max.unary_out", ("aten::max",), partial(_whole, torch.max), _whole_inputs, REAL),
        Subject("min.unary_out", ("aten::min",), partial(_whole, torch.min), _whole_inputs, REAL),
    ),
    "fake_quantize": (
        Subject(
            "fake_quantize_per_tensor_affine_cachemask",
            ("aten::fake_quantize_per_tensor_affine_cachemask",),
            _fake_quantize,
            _FAKE_QUANTIZE_INPUTS,
            gradients=(0,),
            reference=torch.float32,
        ),
        Subject(
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
            ("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",),
            _qparams,
            _qparams_inputs,
            gradients=(0,),
            reference=torch.float32,
        ),
    ),
    "fractional_max_pool2d": (
        Subject(
            "fractional_max_pool2d",
            ("aten::fractional_max_pool2d", "aten::fractional_max_pool2d_backward"),
            _fractional,
            _fractional_inputs,
            gradients=(0,),
            reference=torch.float32,  # the places of the windows follow from a float32 computation
        ),
    ),
    "fused_adagrad": (
        Subject("_fused_adagrad_", ("aten::_fused_adagrad_",), _adagrad, _adagrad_inputs, expands=False),
    ),
    "heaviside": (Subject("heaviside", ("aten::heaviside",), torch.heaviside, _heaviside_inputs, REAL),),
    "ldl": (
        Subject(
            "linalg.ldl_factor_ex and linalg.ldl_solve",
            ("aten::linalg_ldl_factor_ex", "aten::linalg_ldl_solve"),
            _ldl,
            _ldl_inputs,
            (torch.float32, torch.complex64),
            expands=False,
            tolerance=(1e-3, 1e-3),
        ),
    ),
    "logit": (
        Subject("logit", ("aten::logit", "aten::logit_backward"), torch.logit, _probabilities(), gradients=(0,)),
        Subject(
            "logit with eps",
            ("aten::logit", "aten::logit_backward"),
            torch.logit,
            _probabilities(0.125),
            gradients=(0,),
        ),
        Subject("logit_", ("aten::logit_",), torch.Tensor.logit_, _probabilities(0.125), expands=False),
    ),
    "mode": (
        Subject("mode", ("aten::mode",), _mode, _reduced_inputs, REAL, gradients=(0,)),
        Subject("mode of long rows", ("aten::mode",), _mode, _ambiguous_rows),
    ),
    "multi_margin_loss": (
        Subject(
            "multi_margin_loss",
            ("aten::multi_margin_loss", "aten::multi_margin_loss_backward"),
            _multi_margin,
            _margin_inputs,
            gradients=(0,),
        ),
    ),
    "multilabel_margin_loss": (
        Subject(
            "multilabel_margin_loss",
            ("aten::multilabel_margin_loss_forward", "aten::multilabel_margin_loss_backward"),
            _multilabel,
            _multilabel_inputs,
            gradients=(0,),
        ),
    ),
    "normal_distribution": (
        Subject("special.ndtri", ("aten::special_ndtri",), torch.special.ndtri, _probabilities(), gradients=(0,)),
        Subject(
            "special.log_ndtr",
            ("aten::special_log_ndtr",),
            torch.special.log_ndtr,
            _unary(scale=4.0),
            gradients=(0,),
            gradient_factor=20,
        ),
    ),
    "pdist": (
        Subject(
            "pdist",
            ("aten::_pdist_forward", "aten::_pdist_backward"),
            _functional.pdist,
            _pdist_inputs,
            gradients=(0,),
        ),
    ),
    "put_take": (
        Subject("take", ("aten::take",), torch.take, _take_inputs, (*REAL, torch.complex64)),
        Subject(
            "put_",
            ("aten::put_",),
            torch.Tensor.put_,
            partial(_put_inputs, accumulate=False),
            (*REAL, torch.complex64),
            expands=False,
        ),
        Subject(
            "put_ with accumulate",
            ("aten::put_",),
            torch.Tensor.put_,
            partial(_put_inputs, accumulate=True),
            (*REAL, torch.complex64),
            expands=False,
        ),
        Subject("take, backward", ("aten::take",), torch.take, _take_inputs, _FLOAT_ONLY, gradients=(0,)),
        Subject(
            "put, backward",
            ("aten::put_",),
            torch.put,
            partial(_put_inputs, accumulate=True),
            _FLOAT_ONLY,
            gradients=(0, 2),
        ),
    ),
    "rrelu": (Subject("rrelu", ("aten::rrelu_with_noise", "aten::rrelu_with_noise_"), _rrelu, _rrelu_inputs),),
    "shrink": (
        Subject(
            "softshrink",
            ("aten::softshrink", "aten::softshrink_backward"),
            _functional.softshrink,
            _unary(0.75),
            gradients=(0,),
        ),
    ),
}
