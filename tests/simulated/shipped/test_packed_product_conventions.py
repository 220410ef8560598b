"""Products with weights of eight bits by the shipped kernels of each release."""

from __future__ import annotations

import pytest
import torch

from support.shipped_kernels import Shipped, assert_near, normal, overload_of

pytestmark = pytest.mark.network


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 32, 32), (11, 96, 64)])
def test_few_rows(shipped: Shipped, dtype: torch.dtype, rows: int, inner: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = normal(dtype, 0, 1.0)((rows, inner))
    weight = torch.randint(-128, 127, (columns, inner), dtype=torch.int8, generator=generator)
    scales = (torch.rand(columns, generator=generator) * 0.01).to(dtype)
    multiply = overload_of("_weight_int8pack_mm")
    actual = shipped.run(multiply, x, weight, scales, kernels=["int8pack_mv_*"])
    assert_near(actual, (x.double() @ weight.double().T * scales.double()).to(dtype), 5)


def test_more_rows_are_not_planned(shipped: Shipped) -> None:
    x, weight = torch.rand(12, 32), torch.ones(32, 32, dtype=torch.int8)
    (reason,) = shipped.reasons(overload_of("_weight_int8pack_mm"), x, weight, torch.rand(32))
    assert reason.startswith("twelve rows")
