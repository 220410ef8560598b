"""Calls that OpInfo's samples do not make, and that generated kernels are known to fail on: one table, SCENARIOS.

Reductions of sizes around a SIMD group, a threadgroup and beyond, over each dimension; integers beyond 32 bits and
all negative; two operators on narrow integers, whose intermediate result must wrap; transposed and offset inputs; more
buffers than Metal has; NaN and infinities; inputs and buffers that are written. `programs` has longer programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..model.case import Case, CaseSource
from ..model.group import GroupKey
from ..model.selection import Samples
from .programs import PROGRAMS
from .scenario import FLOATING, CompiledScenario, numbers, small_matrix

NARROW = ("int8", "uint8", "int16", "int32")
INTEGERS = ("int64", *NARROW)
# Around a SIMD group of 32, a threadgroup of 1,024, and what takes more than one pass.
REDUCED_SIZES = (31, 33, 40, 1025, 3000)


class ScenarioSource(CaseSource):
    """The cases of SCENARIOS."""

    name = "compiled situations"

    def groups(self) -> Iterable[GroupKey]:
        """One group for each row and dtype."""
        return [
            GroupKey(self.name, scenario.operator, scenario.variant, dtype, "fallback")
            for scenario in SCENARIOS
            for dtype in scenario.dtypes
        ]

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The cases of a row."""
        (scenario,) = (s for s in SCENARIOS if (s.operator, s.variant) == (key.operator, key.variant))
        dtype: torch.dtype = getattr(torch, key.dtype)
        for args in scenario.inputs(dtype):
            if scenario.differentiable:
                args = tuple(_wanting_gradient(arg) for arg in args)
            yield Case(
                scenario.call,
                args,
                differentiable=scenario.differentiable,
                errors_count=scenario.refused,
                distribution=scenario.distribution,
                title=scenario.variant,
            )


def _wanting_gradient(value: Any) -> Any:
    return value.requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value


# ---- inputs


def _to_reduce(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in REDUCED_SIZES:
        yield numbers(dtype, 3, size), 1
        yield numbers(dtype, size, 3), 0


def _to_reduce_whole(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in REDUCED_SIZES:
        yield (numbers(dtype, size),)
    yield (numbers(dtype, 30, 5, 40).permute(2, 0, 1),)


def _negative(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in REDUCED_SIZES:
        yield -torch.randint(1, 100, (2, size)).to(dtype), 1


def _beyond_32_bits(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield (torch.tensor([2**40 + 7, -(2**40) - 7, 2**32, -(2**32) - 1, 2**62, 5, -5, 0], dtype=dtype),)


def _at_the_ends(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    ends = torch.iinfo(dtype)
    yield (torch.tensor([ends.max, ends.max // 2 + 1, ends.min, 3, 1, 0], dtype=dtype),)


def _transposed(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, columns in ((4, 6), (50, 40)):
        yield (numbers(dtype, rows, columns).t(),)
        yield (numbers(dtype, rows + 1, columns)[1:, 1:],)


def _special(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    inf, nan = float("inf"), float("nan")
    values = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 5.0, 20.0, -20.0, 88.8, -104.0, 1e-20, 3e4, -3e4]
    yield (torch.tensor(values, dtype=dtype),)


def _special_rows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in (40, 2000):
        rows = torch.randn(3, size).to(dtype)
        rows[0, size // 2], rows[1, 3], rows[2, -1] = float("nan"), float("inf"), -float("inf")
        yield rows, 1


def _many(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield tuple(numbers(dtype, 8) for _ in range(40))


def _batch(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((16, 8, 4, 4), (4, 3, 1, 2), (2, 3, 40, 40)):
        channels = shape[1]
        yield torch.randn(*shape).to(dtype), torch.zeros(channels).to(dtype), torch.ones(channels).to(dtype)


def _to_normalize(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in REDUCED_SIZES:
        yield (torch.randn(3, size).to(dtype),)


def _two(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    divisor = numbers(dtype, 5, 7)
    yield numbers(dtype, 5, 7) - 1, torch.where(divisor == 0, torch.ones_like(divisor), divisor)


def _parameter(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield torch.randn(5, 7).to(dtype), torch.randn(5, 7).to(dtype), torch.zeros(5, 7).to(dtype)


def _indexed(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield numbers(dtype, 10, 3), torch.tensor([1, -1, 5, 5])


def _labels_that_end(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Rows of scores, and of classes up to the first -1; later ones are ignored."""
    scores = torch.linspace(-1.0, 1.0, 12, dtype=dtype).reshape(3, 4)
    yield scores, torch.tensor([[3, 0, -1, 1], [2, -1, -1, -1], [1, 2, 3, 0]])
    yield scores[:1, :2].clone(), torch.tensor([[1, -1]])


def _wider_than_windows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Rows whose last pooling window (size 3, stride 2) covers only two elements."""
    yield (numbers(dtype, 1, 2, 4),)
    yield (numbers(dtype, 3, 6),)


def _out_of_range(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield numbers(dtype, 10, 3), torch.tensor([1, 2, 10])


# ---- calls: separate functions, so that a program can show the source of each


def _prod_of_constant(x: Tensor, dim: int) -> Tensor:
    return (x * 0 - 1).prod(dim)


def _sum_of_constant(x: Tensor, dim: int) -> Tensor:
    return torch.full_like(x, 0.5).sum(dim)


def _train(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    return functional.batch_norm(x, mean, var, training=True)


def _normalized(x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[1:])


def _averaged_to_the_end(x: Tensor) -> Tensor:
    return functional.avg_pool1d(x, 3, 2, ceil_mode=True)


def _in_place(x: Tensor) -> Tensor:
    x.mul_(2)
    return x.add_(1).sum()


def _momentum_step(parameter: Tensor, gradient: Tensor, moment: Tensor) -> None:
    moment.mul_(0.9).add_(gradient, alpha=0.1)
    parameter.sub_(moment, alpha=0.01)


def _nonzero_times(x: Tensor) -> Tensor:
    return x[x > 0] * 2


def _indexing(x: Tensor, index: Tensor) -> Tensor:
    return x[index] * 2


def _zero_if_negative(x: Tensor) -> Any:
    return torch.where(x < 0, 0, x)


def _one_if_negative(x: Tensor) -> Any:
    return x.masked_fill(x < 0, 1)


def _scaled_and_moved(x: Tensor) -> Any:
    return x * 3 + 2**33


def _to_float32(x: Tensor) -> Any:
    return x.to(torch.float32)


def _doubled_and_widened(x: Tensor) -> Any:
    return (x + x).to(torch.int64)


def _moved_and_compared(x: Tensor) -> Any:
    return (x - 5) > 10


def _doubled_and_halved(x: Tensor) -> Any:
    return (x * 2) >> 1


def _negated_and_compared(x: Tensor) -> Any:
    return -x > 10


def _shifted_and_halved(x: Tensor) -> Any:
    return (x << 3) // 2


def _a_number_shifted(x: Tensor) -> Tensor:
    return 1 << x


def _places(dtype: torch.dtype) -> list[tuple[Tensor]]:
    """Shift counts, some beyond 31."""
    return [(torch.tensor([0, 3, 31, 32, 40, 62], dtype=dtype),)]


def _sum_of_all(*xs: Tensor) -> Any:
    return sum(xs)


def _forty(x: Tensor) -> Any:
    return tuple(x + i for i in range(40))


def _reductions() -> Iterator[CompiledScenario]:
    """Each reduction over a dimension of each size, floating and integral, and of only negative integers."""
    for name in ("sum", "prod", "amax", "amin", "argmax", "argmin"):
        call = getattr(torch, name)
        yield CompiledScenario(name, "sizes", call, _to_reduce, (*FLOATING, *INTEGERS))
        yield CompiledScenario(name, "whole", call, _to_reduce_whole, (*FLOATING, "int64"))
        yield CompiledScenario(name, "all negative", call, _negative, ("int64", "int32"))
    for name in ("mean", "var", "std", "logsumexp", "softmax", "cumsum"):
        yield CompiledScenario(
            name, "sizes", getattr(torch, name), _to_reduce, FLOATING, differentiable=name != "cumsum"
        )
    for name in ("any", "all", "count_nonzero"):
        yield CompiledScenario(name, "sizes", getattr(torch, name), _to_reduce, ("float32", "int64"))


def _elementwise() -> Iterator[CompiledScenario]:
    """Special values for functions that generated code computes inline."""
    for name in (
        *("erfcx", "log_ndtr", "ndtr", "i0e", "i1e", "entr"),
        *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfinv", "digamma"),
    ):
        yield CompiledScenario(
            f"special.{name}", "special values", getattr(torch.special, name), _special, ("float32",)
        )
    for name in (
        *("acosh", "asinh", "cosh", "lgamma", "sigmoid", "tanh", "round", "sign", "expm1", "log1p", "erfc", "exp2"),
        *("floor", "frac", "isfinite", "nan_to_num", "rsqrt", "sinc", "trunc"),
    ):
        yield CompiledScenario(name, "special values", getattr(torch, name), _special, ("float32", "float16"))
    for name in ("gelu", "silu", "softplus", "mish", "elu", "hardswish", "hardshrink", "softshrink", "logsigmoid"):
        yield CompiledScenario(
            f"nn.functional.{name}", "special values", getattr(functional, name), _special, ("float32", "float16")
        )


SCENARIOS: tuple[CompiledScenario, ...] = (
    *_reductions(),
    *_elementwise(),
    CompiledScenario("amax", "special values", torch.amax, _special_rows, FLOATING),
    CompiledScenario("argmax", "special values", torch.argmax, _special_rows, FLOATING),
    CompiledScenario("prod", "of a constant", _prod_of_constant, _to_reduce, ("float32", "int64")),
    CompiledScenario("sum", "of a constant", _sum_of_constant, _to_reduce, ("float32",)),
    CompiledScenario("argmax", "transposed, offset", torch.argmax, _transposed, ("float32", "int64")),
    CompiledScenario("sum", "transposed, offset", torch.sum, _transposed, ("float32", "int64")),
    CompiledScenario("where", "beyond 32 bits", _zero_if_negative, _beyond_32_bits, ("int64",)),
    CompiledScenario("masked_fill", "beyond 32 bits", _one_if_negative, _beyond_32_bits, ("int64",)),
    CompiledScenario("mul", "beyond 32 bits", _scaled_and_moved, _beyond_32_bits, ("int64",)),
    CompiledScenario("to", "beyond 32 bits", _to_float32, _beyond_32_bits, ("int64",)),
    CompiledScenario("sum", "beyond 32 bits", torch.sum, _beyond_32_bits, ("int64",)),
    CompiledScenario("amax", "beyond 32 bits", torch.amax, _beyond_32_bits, ("int64",)),
    CompiledScenario("sign", "beyond 32 bits", torch.sign, _beyond_32_bits, ("int64",)),
    CompiledScenario("add", "then widened", _doubled_and_widened, _at_the_ends, NARROW),
    CompiledScenario("sub", "then compared", _moved_and_compared, _at_the_ends, NARROW),
    CompiledScenario("mul", "then shifted", _doubled_and_halved, _at_the_ends, NARROW),
    CompiledScenario("neg", "then compared", _negated_and_compared, _at_the_ends, NARROW),
    CompiledScenario("bitwise_left_shift", "then divided", _shifted_and_halved, _at_the_ends, NARROW),
    CompiledScenario("bitwise_left_shift", "of a number", _a_number_shifted, _places, ("int64",)),
    CompiledScenario("add", "40 inputs", _sum_of_all, _many, ("float32", "int64")),
    CompiledScenario("add", "40 outputs", _forty, small_matrix, ("float32",)),
    CompiledScenario("nn.functional.batch_norm", "running statistics", _train, _batch, ("float32", "float16")),
    CompiledScenario("mul_", "mutates its input", _in_place, small_matrix, ("float32", "int64")),
    CompiledScenario("sub_", "a step with momentum", _momentum_step, _parameter, FLOATING),
    CompiledScenario("nn.functional.layer_norm", "sizes", _normalized, _to_normalize, FLOATING, differentiable=True),
    CompiledScenario("index", "size by data", _nonzero_times, small_matrix, ("float32",)),
    CompiledScenario("index", "negative and repeated", _indexing, _indexed, ("float32", "int64")),
    CompiledScenario("index", "out of range", _indexing, _out_of_range, ("float32",), refused=True),
    CompiledScenario(
        "nn.functional.multilabel_margin_loss",
        "labels that end",
        torch.nn.functional.multilabel_margin_loss,
        _labels_that_end,
        ("float32",),
    ),
    CompiledScenario(
        "nn.functional.avg_pool1d",
        "last window hangs over",
        _averaged_to_the_end,
        _wider_than_windows,
        ("float32",),
        differentiable=True,
    ),
    CompiledScenario("remainder", "signs", torch.remainder, _two, ("float32", "int64", "int32")),
    CompiledScenario("fmod", "signs", torch.fmod, _two, ("float32", "int64", "int32")),
    CompiledScenario("floor_divide", "signs", torch.floor_divide, _two, ("float32",)),
    CompiledScenario("hypot", "plain", torch.hypot, _two, ("float32",)),
    CompiledScenario("copysign", "plain", torch.copysign, _two, ("float32",)),
    CompiledScenario("nextafter", "plain", torch.nextafter, _two, ("float32",)),
    CompiledScenario("logical_xor", "plain", torch.logical_xor, _two, ("float32", "int64")),
    *PROGRAMS,
)
