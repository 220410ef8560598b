"""A call does not get the plan of an earlier one that it only looks like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from mpsmith.kernels.runtime.shader import MetalKernel, Shader

REGISTERED = (
    *("glu_jvp", "segment_reduce", "_scaled_mm_v2", "_fake_quantize_learnable_per_channel_affine"),
    *("_scaled_mm", "_ctc_loss_backward", "linalg_lu_solve", "cholesky_inverse", "scatter_reduce", "rrelu_with_noise"),
    "rrelu_with_noise_",
)
ATEN = torch.ops.aten


def test_vectors_that_are_not_aligned_take_the_kernel_for_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    usual = Shader.kernel

    def noted(self: Shader, name: str, device: torch.device) -> MetalKernel:
        launched.append(name)
        return usual(self, name, device)

    monkeypatch.setattr(Shader, "kernel", noted)
    whole = torch.randn(70, device="mps")
    for first in (4, 1, 0):
        x = whole[first : first + 64].view(2, 32)
        ATEN.glu_jvp(torch.nn.functional.glu(x), x, x, 1)
    assert launched == ["glu_jvp_wide_float", "glu_jvp_float", "glu_jvp_wide_float"]


def test_lengths_are_not_taken_for_offsets() -> None:
    data, borders = torch.arange(1.0, 8.0), torch.tensor([0, 2, 5])
    for name in ("lengths", "offsets", "lengths"):
        given = {name: borders}
        expected = ATEN.segment_reduce(data, "sum", unsafe=True, **given)
        result = ATEN.segment_reduce(data.to("mps"), "sum", unsafe=True, **{name: borders.to("mps")})
        assert torch.equal(result.cpu(), expected)


def test_recipes_are_checked_in_every_call() -> None:
    left, right = (torch.ones(3, 3).to(torch.float8_e4m3fn).to("mps") for _ in range(2))
    scales = [torch.ones(1, device="mps")]
    for recipe, swizzle, message in ((0, 0, None), (1, 0, None), (2, 0, "Invalid scaling"), (0, 1, "swizzle")):
        arguments = (left, right.t(), scales, [recipe], [swizzle], scales, [recipe], [0], None, torch.float32)
        if message is None:
            assert ATEN._scaled_mm_v2(*arguments).cpu().eq(3).all()
        else:
            with pytest.raises(ValueError, match=message):
                ATEN._scaled_mm_v2(*arguments)
    with pytest.raises(ValueError, match="Invalid scaling"):
        ATEN._scaled_mm_v2(left, right.t(), scales * 2, [0], [0], scales, [0], [0], None, torch.float32)


def test_the_axis_of_channels_is_that_of_the_call() -> None:
    x, scales, zeros = torch.randn(4, 4), torch.linspace(0.1, 0.7, 4), torch.linspace(-2.4, 2.4, 4)
    for axis, high in ((0, 7), (1, 7), (1, 3)):
        arguments = (axis, -8, high, 1.0)
        expected = ATEN._fake_quantize_learnable_per_channel_affine(x, scales, zeros, *arguments)
        given = (y.to("mps") for y in (x, scales, zeros))
        assert torch.equal(ATEN._fake_quantize_learnable_per_channel_affine(*given, *arguments).cpu(), expected)


def _products(*given: torch.Tensor) -> torch.Tensor:
    left, right, *others = given
    narrow = left.view(torch.float8_e4m3fn), right.view(torch.float8_e4m3fn).t()
    return torch._scaled_mm(*narrow, *others[:2], bias=others[2], out_dtype=torch.float32)


def _gradients(*given: torch.Tensor) -> torch.Tensor:
    log_probs, targets, *others = given
    lengths = [log_probs.shape[0]] * 3, [targets.shape[1]] * 3
    return ATEN._ctc_loss_backward(others[0], log_probs, targets, *lengths, *others[1:], 0)  # type: ignore[no-any-return]


def _of_ctc() -> tuple[torch.Tensor, ...]:
    log_probs, targets = torch.randn(4, 3, 5).log_softmax(-1), torch.tensor([[1, 2], [3, 3], [4, 1]])
    return log_probs, targets, torch.rand(3), *ATEN._ctc_loss(log_probs, targets, [4] * 3, [2] * 3)


def _complex(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.complex64)


def _of_products() -> list[torch.Tensor]:
    narrow = [torch.randn(*shape).to(torch.float8_e4m3fn).view(torch.uint8) for shape in ((5, 4), (6, 4))]
    return [*narrow, *(torch.randn(*shape) for shape in ((5, 1), (1, 6), (6,)))]


CALLS: dict[str, tuple[Callable[..., torch.Tensor], Callable[[], Sequence[torch.Tensor]]]] = {
    "scaled product": (_products, _of_products),
    "ctc_loss": (_gradients, _of_ctc),
    "lu_solve": (
        lambda *given: torch.linalg.lu_solve(*given),
        lambda: (*torch.linalg.lu_factor(_complex(2, 3, 3)), _complex(2, 3, 4)),
    ),
    "cholesky_inverse": (torch.cholesky_inverse, lambda: [torch.linalg.cholesky(torch.eye(3) * (2 + 0j) + 0.5)]),
    "scatter_reduce": (
        lambda x, index, src: x.scatter_reduce(1, index, src, "prod"),
        lambda: [torch.randint(1, high, (4, 5)) for high in (9, 5, 9)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_operand_may_have_other_strides_or_another_dtype_in_the_next_call(name: str) -> None:
    call, make = CALLS[name]
    operands = list(make())
    expected, on_mps = call(*operands), [x.to("mps") for x in operands]
    for at, x in enumerate(on_mps):
        strided = torch.stack([x, -x if x.dtype.is_floating_point else x], -1)[..., 0]
        for given in (x, strided, x):
            result = call(*on_mps[:at], given, *on_mps[at + 1 :])
            torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
        if name != "scaled product" and len(operands) > 1:
            with pytest.raises((RuntimeError, NotImplementedError)) as refusal:
                call(*on_mps[:at], torch.ones(x.shape, dtype=torch.float16, device="mps"), *on_mps[at + 1 :])
            assert type(refusal.value) in (RuntimeError, NotImplementedError)  # not that of a simulated kernel


def test_backward_of_ctc_loss_reads_no_variable_that_it_has_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    log_probs, targets = torch.randn(4, 3, 5).log_softmax(-1), torch.tensor([[1, 2], [3, 3], [4, 1]])
    lengths = [4, 2, 3], [2, 1, 0]
    operands = log_probs, targets, torch.rand(3), *ATEN._ctc_loss(log_probs, targets, *lengths)
    usual = torch.empty_like

    def filled(x: torch.Tensor, **options: Any) -> torch.Tensor:
        return usual(x, **options).fill_(float("nan"))

    monkeypatch.setattr(torch, "empty_like", filled)
    results = []
    for device in ("cpu", "mps"):
        x, y, grad, *others = (z.to(device) for z in operands)
        results.append(ATEN._ctc_loss_backward(grad, x, y, *lengths, *others, 0).cpu())
    torch.testing.assert_close(results[1], results[0])


def test_noise_of_rrelu_may_not_share_memory() -> None:
    whole = torch.randn(20, device="mps")
    for noise in (whole[4:], whole[:1].expand(16)):
        with pytest.raises(RuntimeError, match="memory location"):
            ATEN.rrelu_with_noise(whole[:16], noise, 0.1, 0.3, True)
    for x in (whole[:16], whole[:16].clone()):
        given, noise = x.clone(), torch.empty(16, device="mps")
        assert torch.equal(ATEN.rrelu_with_noise_(x, noise, 0.1, 0.3, True), given * noise)
