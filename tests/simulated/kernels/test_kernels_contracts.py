"""Contracts of kernels: torch's error texts, resized outputs, 64-bit offsets, seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpsmith.kernels.multi_margin_loss import multi_margin_loss
from mpsmith.kernels.put_take import put_take
from mpsmith.kernels.runtime import catalog, shader
from mpsmith.kernels.runtime.layout import Layout
from mpsmith.simulator import metal

aten = torch.ops.aten

REGISTERED = tuple(kernel.overload for kernel in catalog.all_kernels())


def on_mps(values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).to("mps")


ERRORS: dict[str, Callable[[str], Any]] = {
    "heaviside, dtypes": lambda d: torch.heaviside(torch.ones(2, device=d), torch.ones(2, device=d, dtype=torch.int64)),
    "heaviside, complex": lambda d: torch.heaviside(*[torch.ones(2, device=d, dtype=torch.complex64)] * 2),
    "heaviside, expanded out": lambda d: torch.heaviside(
        torch.ones(2, device=d), torch.ones(2, device=d), out=torch.ones(1, device=d).expand(2)
    ),
    "logit_ of integers": lambda d: torch.ones(2, device=d, dtype=torch.int64).logit_(),
    "mode, dimension": lambda d: torch.mode(torch.ones(2, 3, device=d), 2),
    "mode, nothing": lambda d: torch.mode(torch.ones(2, 0, device=d), 1),
    "take from nothing": lambda d: torch.take(torch.ones(0, device=d), torch.tensor([0], device=d)),
    "take, index dtype": lambda d: torch.take(torch.ones(3, device=d), torch.tensor([0.0], device=d)),
    "put_, dtypes": lambda d: torch.ones(3, device=d).put_(torch.tensor([0], device=d), torch.tensor([1], device=d)),
    "put_, sizes": lambda d: torch.ones(3, device=d).put_(torch.tensor([0], device=d), torch.ones(2, device=d)),
    "multi_margin_loss, p": lambda d: aten.multi_margin_loss(
        torch.ones(2, 3, device=d), torch.tensor([0, 1], device=d), 3
    ),
    "multi_margin_loss, target": lambda d: aten.multi_margin_loss(
        torch.ones(2, 3, device=d), torch.tensor([0], device=d)
    ),
    "adaptive_avg_pool3d, dimensions": lambda d: aten._adaptive_avg_pool3d(torch.ones(2, 3, device=d), [1, 1, 1]),
    "adaptive_max_pool3d, empty": lambda d: torch.nn.functional.adaptive_max_pool3d(
        torch.ones(1, 2, 0, 3, 3, device=d), 2
    ),
    "fake_quantize, zero point": lambda d: torch.fake_quantize_per_tensor_affine(
        torch.ones(2, device=d), 0.1, 300, 0, 255
    ),
    "multi_margin_loss, infinite p": lambda d: aten.multi_margin_loss(
        torch.ones(2, 3, device=d), torch.tensor([0, 1], device=d), math.inf
    ),
    "multilabel_margin_loss_backward, complex marks": lambda d: aten.multilabel_margin_loss_backward(
        torch.ones((), device=d),
        torch.ones(3, device=d),
        torch.tensor([0, 1, -1], device=d),
        1,
        torch.ones(3, device=d, dtype=torch.complex64),
    ),
    "narrow_copy, dimension": lambda d: aten.narrow_copy.out(
        torch.ones(3, 4, device=d), 2, 0, 1, out=torch.empty(0, device=d)
    ),
    "ldl_factor_ex, dimensions": lambda d: torch.linalg.ldl_factor_ex(torch.ones(3, device=d)),
    "ldl_factor_ex, dimensions of out": lambda d: aten.linalg_ldl_factor_ex.out(
        torch.ones((), device=d),
        LD=torch.ones(2, 2, device=d),
        pivots=torch.ones(2, device=d, dtype=torch.int32),
        info=torch.ones((), device=d, dtype=torch.int32),
    ),
    "glu_backward_jvp, bools": lambda d: aten.glu_backward_jvp(
        torch.ones(2, device=d),
        torch.ones(1, device=d),
        torch.ones(2, device=d, dtype=torch.bool),
        torch.ones(1, device=d),
        torch.ones(2, device=d),
        0,
    ),
    "max, complex": lambda d: aten.max.unary_out(
        torch.ones(2, device=d, dtype=torch.complex64), out=torch.empty((), device=d, dtype=torch.complex64)
    ),
    "pdist_backward, integers": lambda d: aten._pdist_backward(
        torch.ones(3, device=d), torch.ones(3, 2, device=d, dtype=torch.int64), 2.0, torch.ones(3, device=d)
    ),
    "fractional_max_pool2d_backward, bools": lambda d: aten.fractional_max_pool2d_backward(
        torch.ones(1, 1, 1, device=d),
        torch.ones(1, 2, 2, device=d, dtype=torch.bool),
        [1, 1],
        [1, 1],
        torch.zeros(1, 1, 1, device=d, dtype=torch.int64),
    ),
    "linear, dtype of the bias": lambda d: torch.nn.functional.linear(
        *(torch.ones(2, 2, device=d, dtype=torch.int64),) * 2, torch.ones(2, device=d, dtype=torch.int32)
    ),
    "embedding_renorm_, dimensions": lambda d: torch.embedding_renorm_(
        torch.ones(2, device=d), torch.tensor([0], device=d), 1.0, 2.0
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_equal_the_cpu(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError, ValueError)) as expected:
        ERRORS[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        ERRORS[name]("mps")
    words = [word for word in str(expected.value).split("\n")[0].split() if word.isalpha()][:6]
    assert [word for word in str(actual.value).split("\n")[0].split() if word.isalpha()][:6] == words


def test_a_gradient_of_another_dtype_is_not_a_missing_kernel() -> None:
    with pytest.raises(RuntimeError, match="scalar type Long") as refused:
        aten._adaptive_avg_pool2d_backward(
            torch.ones(1, 1, 3, 4, device="mps"), torch.ones(1, 1, 4, 5, device="mps").long()
        )
    assert not isinstance(refused.value, NotImplementedError)


def test_scalar_tensor_may_be_on_the_cpu() -> None:
    x = on_mps([-1.0, 0.0, 1.0])
    assert torch.heaviside(x, torch.tensor(5.0)).tolist() == [0, 5, 1]
    assert torch.take(x, torch.tensor(2)).item() == 1
    assert torch.heaviside(torch.tensor(0.0), x).tolist() == [-1, 0, 1]


@pytest.mark.parametrize("p", [1.5, 2.9])
def test_margin_loss_truncates_its_power(p: float) -> None:
    x, target = torch.tensor([[0.5, -1.0, 2.0], [0.1, 0.7, 0.3]]), torch.tensor([1, 2])
    for call in (
        lambda x, target: aten.multi_margin_loss(x, target, p),
        lambda x, target: aten.multi_margin_loss_backward(torch.ones((), device=x.device), x, target, p, 1.0),
    ):
        torch.testing.assert_close(call(x.to("mps"), target.to("mps")).cpu(), call(x, target))


def test_margin_loss_weighs_no_row_without_a_loss() -> None:
    x, target = torch.tensor([[9.0, 1.0], [1.0, 3.0], [2.0, math.nan]]), torch.tensor([0, 1, 0])
    for last in (2, 3):
        given = x[:last], target[:last], 2, -0.5, torch.tensor([math.nan, 2.0])
        ours = aten.multi_margin_loss(
            *(value.to("mps") if isinstance(value, torch.Tensor) else value for value in given), 0
        )
        torch.testing.assert_close(ours.cpu(), aten.multi_margin_loss(*given, 0), equal_nan=True)


def test_margin_loss_of_no_rows_keeps_its_output() -> None:
    x, target, out = torch.ones(0, 3, device="mps"), on_mps([], torch.int64), on_mps(7.0)
    assert aten.multi_margin_loss.out(x, target, out=out).item() == 7.0
    rows = aten.multi_margin_loss.out(x, target, 1, 1, None, 0, out=torch.empty(0, 2, device="mps"))
    assert rows.shape == (0,)
    assert aten.multi_margin_loss(x, target).isnan()
    assert aten.multi_margin_loss(x, target, 1, 1, None, 2).item() == 0.0
    assert aten.multi_margin_loss(x, target, 1, 1, None, 0).shape == (0,)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0)])
def test_heaviside_out_gets_the_strides_of_its_input(order: tuple[int, ...]) -> None:
    x, values = torch.randn(2, 3, 4).permute(order), torch.ones(())
    expected = torch.heaviside(x, values, out=torch.empty(0))
    actual = torch.heaviside(x.to("mps"), values.to("mps"), out=torch.empty(0, device="mps"))
    assert actual.stride() == expected.stride()
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("training", [False, True])
def test_rrelu_returns_contiguous_tensors(training: bool) -> None:
    x = torch.randn(2, 3, 4).transpose(0, 2)
    expected = torch.nn.functional.rrelu(x, training=training)
    assert torch.nn.functional.rrelu(x.to("mps"), training=training).stride() == expected.stride()


def test_extremum_is_cast_to_the_output() -> None:
    x = on_mps([3, -7, 5], torch.int16)
    assert torch.max(x, out=torch.empty((), device="mps")).item() == 5.0
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.min(on_mps([1.5]), out=torch.empty((), dtype=torch.int64, device="mps"))


@pytest.mark.parametrize(("zero_point", "enabled"), [(1.7, 1.0), (-0.7, 1.0), (1.0, 0.7)])
def test_fake_quantization_truncates_zero_point_and_switch(zero_point: float, enabled: float) -> None:
    call = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    tensors = [torch.tensor(values) for values in ([0.33, 0.94], [0.1], [zero_point], [enabled])]
    for ours, theirs in zip(call(*(t.to("mps") for t in tensors), 0, 8), call(*tensors, 0, 8), strict=True):
        assert torch.equal(ours.cpu(), theirs)


def test_log_ndtr_of_large_numbers() -> None:
    largest = torch.finfo(torch.float32).max
    values = torch.special.log_ndtr(on_mps([largest, 1e20, 20.0, -1e20, -largest])).tolist()
    assert values == [0.0, 0.0, 0.0, -math.inf, -math.inf]


def test_operands_on_the_cpu_are_refused() -> None:
    x = on_mps([[1.0, 2.0]])
    calls: list[Callable[[], Any]] = [
        lambda: torch.take(x, torch.tensor([0])),
        lambda: x.put_(on_mps([0]), torch.ones(1)),
        lambda: torch.nn.functional.multi_margin_loss(x, torch.tensor([0])),
        lambda: torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, -1]])),
        lambda: torch.embedding_renorm_(x, torch.tensor([0]), 1.0, 2.0),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()


def test_unsupported_dtype() -> None:
    with pytest.raises(NotImplementedError, match=r"special_ndtri is not implemented for torch.complex64 on mps"):
        aten.special_ndtri.out(on_mps([1j]), out=on_mps([1j]))


def test_overlapping_input_is_copied() -> None:
    memory = torch.rand(10)
    expected = torch.special.ndtri(memory[:8:2])  # with gaps: torch refuses dense ones alone
    m = memory.to("mps")
    torch.special.ndtri(m[:8:2], out=m[2::2])
    torch.testing.assert_close(m[2::2].cpu(), expected)


OUT_OF_RANGE: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "take": (
        lambda x: torch.take(x, on_mps([1, -7])),
        r"take\(\): index -7 is out of range of a tensor with 6 elements",
    ),
    "put_": (lambda x: x.put_(on_mps([6]), on_mps([9.0])), "index 6 is out of range of a tensor with 6 elements"),
    "put_ that adds": (lambda x: x.put_(on_mps([-9]), on_mps([9.0]), accumulate=True), "index -9 is out of range"),
    "embedding_renorm_": (
        lambda x: torch.embedding_renorm_(x, on_mps([2]), 100.0, 2.0),
        r"embedding_renorm_\(\): index 2 is out of range of 2 rows",
    ),
    "multi_margin_loss": (
        lambda x: torch.nn.functional.multi_margin_loss(x, on_mps([0, 7])),
        "target 7 of row 1 is out of range of 3 classes",
    ),
    "multi_margin_loss_backward": (
        lambda x: aten.multi_margin_loss_backward(on_mps(1.0), x, on_mps([-1, 0]), 1, 1),
        "target -1 of row 0 is out of range of 3 classes",
    ),
    "multilabel_margin_loss": (
        lambda x: torch.nn.functional.multilabel_margin_loss(x, on_mps([[0, 3, -1], [-1, 9, 9]])),
        "target 3 is out of range of 3 classes",
    ),
    "multilabel_margin_loss, below -1": (
        lambda x: torch.nn.functional.multilabel_margin_loss(x, on_mps([[0, 1, -1], [1, 2, -7]])),
        "target -7 is out of range of 3 classes",
    ),
    "multilabel_margin_loss_backward": (
        lambda x: aten.multilabel_margin_loss_backward(
            on_mps(1.0), x, on_mps([[0, 3, -1], [0, -1, -1]]), 1, torch.zeros_like(x)
        ),
        "target 3 is out of range of 3 classes",
    ),
    "multilabel_margin_loss_backward, below -1": (
        lambda x: aten.multilabel_margin_loss_backward(
            on_mps(1.0), x, on_mps([[0, 1, -1], [0, 2, -7]]), 1, torch.zeros_like(x)
        ),
        "target -7 is out of range of 3 classes",
    ),
    "a learned zero point": (
        lambda x: aten._fake_quantize_learnable_per_tensor_affine(x, on_mps([0.1]), on_mps([math.nan]), 0, 7),
        "`zero_point` must be between",
    ),
    "a learned zero point for nothing": (
        lambda x: aten._fake_quantize_learnable_per_tensor_affine(x[:0], on_mps([0.1]), on_mps([math.nan]), 0, 7),
        "`zero_point` must be between",
    ),
    "fractional_max_pool2d_backward": (
        lambda x: aten.fractional_max_pool2d_backward(on_mps([[[1.0]]]), x[None], [1, 1], [1, 1], on_mps([[[6]]])),
        "index 6 is out of range of a plane of 6 elements",
    ),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_number_out_of_range_is_reported_as_torch_reports_it(name: str) -> None:
    """And touches no memory but its own result: the checked mode sees every access."""
    call, message = OUT_OF_RANGE[name]
    with metal.checking("checked"), pytest.raises(torch.AcceleratorError, match=message):
        call(on_mps([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def test_releases_without_a_buffer_for_errors_pass_over_an_index_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shader, "REPORTS_ERRORS", False)
    for family in (put_take, multi_margin_loss):
        monkeypatch.setattr(family, "_shader", shader.Shader(family.__file__))
    with metal.checking("checked"):
        assert torch.take(on_mps([1.0, 2.0]), on_mps([1, 2, -3])).tolist() == [2.0, 0.0, 0.0]
        assert on_mps([1.0, 2.0]).put_(on_mps([5, 0]), on_mps([9.0, 8.0])).tolist() == [8.0, 2.0]
        assert math.isnan(torch.nn.functional.multi_margin_loss(on_mps([[1.0, 2.0]]), on_mps([7])).item())


@pytest.mark.parametrize("operator", ["heaviside", "take", "_fused_adagrad_"])
def test_64_bit_offsets_give_the_same(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large to run here for real: the wide kernels run on a small tensor."""

    def call(device: str) -> torch.Tensor:
        x = torch.arange(-6.0, 6.0).reshape(3, 4).to(device)
        # The CPU's fused optimizer takes its tensors for contiguous: the strides are for mps alone.
        x = x.t() if operator != "_fused_adagrad_" else x if device == "cpu" else x.t().contiguous().t()
        if operator == "heaviside":
            return torch.heaviside(x, torch.ones(3, device=device))
        if operator == "take":
            return torch.take(x, torch.tensor([3, -1], device=device))
        lists = [[t] for t in (x, x.contiguous().clone(), x.abs(), torch.ones((), device=device))]
        torch._fused_adagrad_(*lists, lr=0.1, lr_decay=0, weight_decay=0, eps=1e-8, maximize=False)
        return x

    expected = call("cpu")
    monkeypatch.setattr(Layout, "fits_32_bits", False)
    torch.testing.assert_close(call("mps").cpu(), expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 6), max_size=4), st.integers(0, 3), st.booleans(), st.integers(0, 2**16))
def test_shapes_and_strides_at_random(shape: list[int], offset: int, flipped: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    count = math.prod(shape)
    x = torch.randn(count + offset, generator=generator)[offset:].reshape(shape)
    x = x.permute(*reversed(range(len(shape)))) if flipped and shape else x
    m = x.to("mps") if not flipped else x.contiguous().to("mps")
    at_zero = torch.randn((), generator=generator)
    x = torch.where(x.abs() < 0.3, torch.zeros_like(x), x)
    m = torch.where(m.abs() < 0.3, torch.zeros_like(m), m)
    assert torch.equal(torch.heaviside(m, at_zero.to("mps")).cpu(), torch.heaviside(x, at_zero))
    if count:
        out = torch.empty((), device="mps")
        assert torch.max(m, out=out).item() == x.max().item()
        index = torch.randint(-count, count, (5,), generator=generator)
        assert torch.equal(torch.take(m, index.to("mps")).cpu(), torch.take(x, index))


def test_rrelu_is_uniform_and_follows_the_seed() -> None:
    x = -torch.ones(20000, device="mps")

    def draw(seed: int) -> torch.Tensor:
        torch.mps.manual_seed(seed)
        return -torch.nn.functional.rrelu(x, 0.1, 0.5, training=True).cpu()

    slopes = draw(7)
    assert torch.equal(slopes, draw(7))
    assert not torch.equal(slopes, draw(8))
    assert slopes.min() >= 0.1
    assert slopes.max() <= 0.5
    # Five standard deviations of mean and variance of a uniform distribution.
    assert abs(slopes.mean().item() - 0.3) < 5 * 0.4 / math.sqrt(12 * len(slopes))
    assert abs(slopes.var().item() - 0.16 / 12) < 5 * 0.16 / math.sqrt(180 * len(slopes))
    generator = torch.Generator(device="mps").manual_seed(3)
    noise = torch.empty_like(x)
    first = aten.rrelu_with_noise(x, noise, 0.1, 0.5, True, generator)
    generator.manual_seed(3)
    assert torch.equal(first, aten.rrelu_with_noise(x, noise.t(), 0.1, 0.5, True, generator))


@pytest.mark.parametrize(
    ("name", "low", "high"), [("airy_ai", -20.0, 12.0), ("ndtri", 1e-6, 1 - 1e-6), ("log_ndtr", -30.0, 6.0)]
)
def test_special_functions_against_many_digits(name: str, low: float, high: float) -> None:
    """Torch's own airy_ai is off by 3e-6 around -2.3, so it is not a reference."""
    with mpmath.workdps(30):
        exact = {
            "airy_ai": mpmath.airyai,
            "ndtri": lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1),
            "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
        }[name]
        x = torch.linspace(low, high, 211)
        expected = torch.tensor([float(exact(mpmath.mpf(v.item()))) for v in x], dtype=torch.float64)
    actual = getattr(torch.special, name)(x.to("mps")).cpu().double()
    error = (actual - expected).abs()
    assert (error <= 4e-7 * expected.abs() + 3e-7).all(), (x[error.argmax()], error.max())
    smooth = x > 0 if name == "airy_ai" else x.isfinite()  # Ai has zeros below -2.3
    assert (error <= 1e-6 * expected.abs() + 1e-9 * (name != "airy_ai"))[smooth].all()


def test_adagrad_steps_may_be_views() -> None:
    """torch passes a 0-dim CPU tensor without its storage offset: a step would be another parameter's."""
    steps = torch.tensor([1.0, 2.0, 9.0])
    parameters = [on_mps([1.0]) for _ in steps]
    lists = (parameters, [on_mps([1.0]) for _ in steps], [on_mps([0.0]) for _ in steps], list(steps.unbind()))
    torch._fused_adagrad_(*lists, lr=1.0, lr_decay=1.0, weight_decay=0.0, eps=0.0, maximize=False)
    torch.testing.assert_close(torch.cat(parameters).cpu(), 1 - 1 / steps)


def test_adagrad_found_inf_and_grad_scale() -> None:
    def step(found_inf: float) -> list[torch.Tensor]:
        lists = [[on_mps([1.0, 2.0])], [on_mps([4.0, -8.0])], [on_mps([1.0, 1.0])], [on_mps(1.0)]]
        torch._fused_adagrad_(
            *lists,
            lr=1.0,
            lr_decay=0.0,
            weight_decay=0.0,
            eps=0.0,
            maximize=False,
            grad_scale=on_mps([4.0]),
            found_inf=on_mps([found_inf]),
        )
        return [values[0].cpu() for values in lists[:3]]

    parameter, gradient, total = step(0.0)
    assert gradient.tolist() == [1.0, -2.0]
    assert total.tolist() == [2.0, 5.0]
    torch.testing.assert_close(parameter, torch.tensor([1 - 1 / math.sqrt(2), 2 + 2 / math.sqrt(5)]))
    assert [t.tolist() for t in step(1.0)] == [[1.0, 2.0], [4.0, -8.0], [1.0, 1.0]]


def test_optimizer_uses_fused_adagrad() -> None:
    def train(device: str, **options: Any) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Linear(5, 3)
        model.to(device)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, lr_decay=0.01, weight_decay=0.1, **options)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.full((2, 5), 0.5 + step, device=device)).square().sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    for ours, theirs in zip(train("mps", fused=True), train("cpu", foreach=False), strict=True):
        torch.testing.assert_close(ours, theirs)


PLANES = torch.randn(4, 3, 8, 8)
POOLED, PLACES = aten.fractional_max_pool2d(PLANES, [2, 2], [3, 3], torch.rand(4, 3, 2))
SYMMETRIC = torch.eye(3)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16])
def test_ldl_pivots_of_any_integer_dtype(dtype: torch.dtype) -> None:
    hollow = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    factors, pivots, _ = torch.linalg.ldl_factor_ex(hollow.to("mps"))
    solved = torch.linalg.ldl_solve(factors, pivots.to(dtype), torch.ones(3, 1, device="mps"))
    torch.testing.assert_close((hollow @ solved.cpu()), torch.ones(3, 1))


@pytest.mark.parametrize("pivots", [[3000, 2, 3], [0, 1, 2], [-4, -4, 3], [-(2**31), 1, 1]])
def test_ldl_pivots_out_of_range_give_nan(pivots: list[int]) -> None:
    side = torch.linalg.ldl_solve(SYMMETRIC.to("mps"), on_mps(pivots, torch.int32), torch.ones(3, 2, device="mps"))
    assert side.isnan().all()


def test_inconsistent_ldl_pivots_stay_in_bounds() -> None:
    for pivots in ([1, 2, -3], [-1, 1, 1], [-1, -1, -1]):
        torch.linalg.ldl_solve(SYMMETRIC.to("mps"), on_mps(pivots, torch.int32), torch.ones(3, 1, device="mps")).cpu()


@pytest.mark.parametrize("order", [math.inf, -math.inf, -1.0])
def test_embedding_renorm_of_any_order(order: float) -> None:
    table, rows = torch.tensor([[3.0, 4.0], [0.0, 1.0], [-5.0, 2.0]]), torch.tensor([0, 1, 2])
    expected = aten.embedding_renorm_(table.clone(), rows, 1.0, order)
    torch.testing.assert_close(aten.embedding_renorm_(table.to("mps"), rows.to("mps"), 1.0, order).cpu(), expected)


@pytest.mark.parametrize("p", [0.0, 1.0, 3.0, math.inf])
def test_pdist_propagates_nan(p: float) -> None:
    rows = torch.tensor([[math.nan, 1.0, 2.0], [0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])
    on_both = [rows.clone().requires_grad_(), rows.to("mps").requires_grad_()]
    distances = [torch.pdist(x, p) for x in on_both]
    gradients = [torch.autograd.grad(d.sum(), x)[0] for d, x in zip(distances, on_both, strict=True)]
    for expected, actual in (distances, gradients):
        torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


def test_overlapping_and_cpu_outputs_are_refused() -> None:
    memory = torch.rand(6, device="mps")
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.special.ndtri(memory[:4], out=memory[1:5])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        memory.put_(on_mps([1, 2]), memory[2:4])
    with pytest.raises(RuntimeError, match=r"mps:0 and cpu! \(when checking argument out of special_ndtri"):
        torch.special.ndtri(memory, out=torch.empty(6))


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
def test_alerts_not_deterministic() -> None:
    x, place = torch.zeros(4, device="mps"), on_mps([1])
    with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
        x.put_(place, on_mps([1.0]))
    with pytest.raises(RuntimeError, match="fractional_max_pool2d_backward does not have a deterministic"):
        aten.fractional_max_pool2d_backward(*(POOLED.to("mps"), PLANES.to("mps"), [2, 2], [3, 3], PLACES.to("mps")))
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="put_ does not have a deterministic implementation"):
        x.put_(place, on_mps([1.0]))


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.int64])
def test_deterministic_put_does_not_depend_on_thread_order(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of every size, of which any other order of summands gives another sum."""
    launched: list[str] = []
    kernel = put_take._shader.kernel
    monkeypatch.setattr(put_take._shader, "kernel", lambda name, device: launched.append(name) or kernel(name, device))
    generator = torch.Generator().manual_seed(2)
    source = (torch.randn(500, generator=generator) * torch.logspace(-3, 3, 500)).to(dtype)
    places = torch.randint(-6, 6, (500,), generator=generator)
    start = torch.ones(2, 3).to(dtype)
    expected = start.double() if not dtype.is_complex else start.to(torch.complex128)
    expected = expected.clone().put_(places, source.to(expected.dtype), accumulate=True)
    with metal.checking("schedules"):  # forward, in reverse, in a random order: the same, bit for bit
        x = torch.ones(3, 2).to("mps", dtype).mT
        actual = x.put_(places.to("mps"), source.to("mps"), accumulate=True).cpu()
    assert [name.startswith("put_accumulate_sorted") for name in launched] == [dtype != torch.int64]
    tolerance = 0.0 if dtype == torch.int64 else 4 * torch.finfo(dtype).eps * float(source.abs().sum())
    torch.testing.assert_close(actual.to(expected.dtype), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("observes", [0.5, 1.0])
def test_disabled_quantization_ignores_its_arguments(observes: float) -> None:
    def state_after(device: str) -> list[torch.Tensor]:
        x, switches = torch.tensor([[-1.0, 2.0]]), (torch.tensor([observes]), torch.tensor([0.0]))
        state = [torch.tensor(numbers) for numbers in ([0.5], [1.5], [0.25, 0.75], [0.4])]
        tensors = [tensor.to(device) for tensor in (x, *switches, *state)]
        result = torch.ops.aten._fused_moving_avg_obs_fq_helper(*tensors, 0.25, 3, 1, 0)
        return [tensor.cpu() for tensor in (*result, *tensors)]

    for mine, cpus in zip(state_after("mps"), state_after("cpu"), strict=True):
        torch.testing.assert_close(mine, cpus)


def test_observer_refuses_other_dtypes() -> None:
    def refused(device: str, observes: int, limits: int) -> None:
        ones, low = torch.ones(1, device=device), torch.zeros(limits, device=device)
        x, switch = torch.ones(2, 2, dtype=torch.bool, device=device), torch.tensor([observes], device=device)
        zero = torch.zeros(1, dtype=torch.int32, device=device)
        torch.ops.aten._fused_moving_avg_obs_fq_helper(x, switch, ones, low, ones, ones, zero, 0.25, 0, 9, 0)

    for device in ("cpu", "mps"):
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Bool"):
            refused(device, 1, 1)
        with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
            refused(device, 0, 2)
        with pytest.raises(NotImplementedError, match="not implemented for"):
            refused(device, 0, 1)


@pytest.mark.parametrize("limits", [(0.5, 0.25), (math.nan, 0.5), (0.0, math.inf)])
def test_rrelu_checks_its_limits_only_for_draws(limits: tuple[float, float]) -> None:
    for device in ("cpu", "mps"):
        x, noise = torch.tensor([0.5, 2.0], device=device), torch.zeros(2, device=device)
        assert torch.equal(torch.ops.aten.rrelu_with_noise(x, noise, *limits, True), x)
        assert noise.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError):
            torch.ops.aten.rrelu_with_noise(-x, noise, 0.5, 0.25, True)


def test_rrelu_accepts_any_noise_without_training() -> None:
    x, noise = torch.tensor([-1.0, 2.0]), torch.zeros(2, dtype=torch.float16)
    slopes = torch.ops.aten.rrelu_with_noise(x.to("mps"), noise.to("mps"), 0.25, 0.75, False)
    assert slopes.tolist() == torch.ops.aten.rrelu_with_noise(x, noise, 0.25, 0.75, False).tolist()
