"""Elements in another order: which kernel moves them, in which width of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.kernels.rearrange import rearrange
from mpsmith.kernels.runtime import layout, signatures
from mpsmith.simulator import metal

REGISTERED = ("aten::channel_shuffle", "aten::narrow_copy.out")


def test_the_result_has_the_memory_format_that_strides_with_gaps_suggest() -> None:
    x = torch.randn(2, 4, 5, 6).to(memory_format=torch.channels_last)
    assert torch.channel_shuffle(x.to("mps")[..., ::2], 2).stride() == torch.channel_shuffle(x[..., ::2], 2).stride()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    ("dtype", "word"),
    [(torch.bool, "uchar"), (torch.half, "ushort"), (torch.float32, "uint"), (torch.complex64, "ulong")],
)
def test_every_second_element_in_four_parts_and_odd_sizes_one_by_one(
    dtype: torch.dtype, word: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []

    def recorded(name: str, device: torch.device, kernel: Callable[..., Any] = rearrange._shader.kernel) -> Any:
        launched.append(name)
        return kernel(name, device)

    monkeypatch.setattr(rearrange._shader, "kernel", recorded)
    if bits == 64:
        monkeypatch.setattr(layout, "LARGEST_32_BIT", 0)
    monkeypatch.setattr(signatures, "plans", {})
    layout.layout_over.cache_clear()  # a layout remembers which places fit
    try:
        with metal.checking("checked"):
            for shape, groups in (((2, 6, 20, 22), 3), ((1, 8, 7, 10), 4), ((3, 9, 5, 14), 3), ((1, 6, 32), 2)):
                memory = torch.randn(shape).mul(3).to(dtype)
                actual = torch.channel_shuffle(memory.to("mps")[..., ::2], groups)
                assert torch.equal(actual.cpu(), torch.channel_shuffle(memory[..., ::2], groups))
            out = torch.empty(20, 11, dtype=dtype, device="mps").t()
            torch.narrow_copy(torch.ones(20, 20, dtype=dtype, device="mps"), 0, 3, 11, out=out)
    finally:
        layout.layout_over.cache_clear()
    wide = "" if bits == 32 else "64"
    assert out.cpu().all()
    parts, single = f"copy_parts{wide}_{word}", f"copy{wide}_{word}"
    assert launched[:4] == [parts, parts, single, parts]
    assert launched[-1] == parts
