"""The reduction of the losses of all rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mpsmith.kernels.runtime.loss import MEAN, NONE, SUM, reduce_losses

LOSSES = torch.tensor([1.0, 2.5, 4.0, 0.25])


class Recorded(TorchDispatchMode):
    """The operators that are called inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **kwargs or {})


@pytest.mark.parametrize(
    ("reduction", "operator", "value"), [(MEAN, "aten.mean.out", 1.9375), (SUM, "aten.sum.IntList_out", 7.75)]
)
def test_float32_results_need_no_copy(reduction: int, operator: str, value: float) -> None:
    """A copy would be a launch more."""
    out = torch.empty(0)
    with Recorded() as recorded:
        assert reduce_losses(LOSSES, reduction, keeps_rows=True, out=out) is out
    assert [name for name in recorded.names if "resize" not in name] == [operator]
    assert out.shape == ()
    assert out.item() == value


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_reduced_in_float32_and_rounded_once(dtype: torch.dtype) -> None:
    losses = torch.full((5000,), 1.0 + 2**-9)
    for reduction, expected in ((MEAN, losses.mean()), (SUM, losses.sum())):
        out = reduce_losses(losses, reduction, keeps_rows=True, out=torch.empty(0, dtype=dtype))
        assert torch.equal(out, expected.to(dtype))


def test_without_reduction_every_row_keeps_its_loss() -> None:
    assert torch.equal(reduce_losses(LOSSES, NONE, keeps_rows=True, out=torch.empty(0)), LOSSES)
    single = reduce_losses(LOSSES[:1], NONE, keeps_rows=False, out=torch.empty(0))
    assert torch.equal(single, torch.tensor(1.0))


def test_of_no_rows_the_mean_is_nan_and_the_sum_zero() -> None:
    assert reduce_losses(torch.empty(0), MEAN, keeps_rows=True, out=torch.empty(0)).isnan()
    assert reduce_losses(torch.empty(0), SUM, keeps_rows=True, out=torch.empty(0)).item() == 0.0
