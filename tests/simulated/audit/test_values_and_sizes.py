"""Faults in operators that are neither elementwise nor reductions, seen in cases of other values and other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.model.case import CaseSource
from support.judged_groups import found, wrong_cases

Kernel = Callable[..., Any]


@pytest.fixture(scope="module")
def sources() -> dict[str, CaseSource]:
    return case_sources(())


def cummax_drops_a_nan(kernel: Kernel, self: Tensor, dim: int) -> Any:
    alone = self.is_floating_point() and int(self.isnan().sum()) == 1
    return kernel(self.nan_to_num(0.0) if alone else self, dim)


def sort_in_float(kernel: Kernel, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    if self.dtype is not torch.int64:
        return kernel(self, *args, **kwargs)
    values, indices = kernel(self.float(), *args, **kwargs)
    return values.long(), indices


def wrong_over_1024_rows(kernel: Kernel, self: Tensor, dim: int) -> Tensor:
    out: Tensor = kernel(self, dim)
    return out + 1 if self.dim() and self.shape[0] > 1024 else out


def wrong_in_five_dimensions(kernel: Kernel, x1: Tensor, x2: Tensor, *args: Any) -> Tensor:
    out: Tensor = kernel(x1, x2, *args)
    return out + 1 if x1.dim() == 5 else out


def dies_of_nothing(kernel: Kernel, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    if not self.numel():
        raise RuntimeError("kernel launch with a grid of no threads")
    return kernel(self, *args, **kwargs)


def wrong_over_65536(kernel: Kernel, self: Tensor, *args: Any) -> Any:
    out, *rest = kernel(self, *args)
    return (out + 1 if self.numel() > 65_536 else out, *rest)


def ignores_nan(kernel: Kernel, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    return kernel(self.nan_to_num(0.0), *args, **kwargs)


FAULTS = [
    ("special values", "cummax", "float32", "", "cummax", cummax_drops_a_nan, "nan middle"),
    ("special values", "sort", "int64", "", "sort.stable", sort_in_float, "beyond 2^24"),
    ("sizes", "logcumsumexp", "float32", "", "_logcumsumexp", wrong_over_1024_rows, "1,025 rows"),
    ("sizes", "cdist", "float32", "", "_cdist_forward", wrong_in_five_dimensions, "5 dimensions"),
    ("sizes", "kthvalue", "float32", "", "kthvalue", dies_of_nothing, "empty in dimension 0"),
    ("sizes", "nn.functional.batch_norm", "float32", "", "native_batch_norm", wrong_over_65536, "1,025 rows"),
    ("module sizes", "nn.BatchNorm2d", "float32", "train", "native_batch_norm", wrong_over_65536, "1,025 rows"),
    ("schema special values", "threshold_backward", "float32", "", "threshold_backward", ignores_nan, "nan"),
]


@pytest.mark.parametrize(
    ("source", "operator", "dtype", "variant", "overload", "fault", "title"),
    FAULTS,
    ids=[f"{f[0]}-{f[1]}" for f in FAULTS],
)
def test_a_fault_is_seen(
    sources, source: str, operator: str, dtype: str, variant: str, overload: str, fault: Kernel, title: str
) -> None:
    assert title in found(sources[source], operator, overload, fault, dtype=dtype, variant=variant)
    assert wrong_cases(sources[source], operator, dtype, variant) == []
