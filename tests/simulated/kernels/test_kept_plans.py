"""A call does not get the plan of an earlier one that it only looks like."""

from __future__ import annotations

import pytest
import torch

from mpsmith.kernels.runtime.shader import MetalKernel, Shader

REGISTERED = (*("glu_jvp", "segment_reduce", "_scaled_mm_v2", "_fake_quantize_learnable_per_channel_affine"),)
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
