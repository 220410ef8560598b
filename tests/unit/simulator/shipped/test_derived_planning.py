"""Operators built from others, and searches: the inner calls' kernels, without running any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions import PLANNERS
from mpsmith.simulator.shipped.conventions.composition import inner
from mpsmith.simulator.shipped.plan import BlitCopy, Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned


def steps_of(kernels: Sequence[str], overload: str, *results: Tensor, **arguments: Any) -> Sequence[Step]:
    return planned(PLANNERS, overload, FakeKernels(dict.fromkeys(kernels, ())), *results, **arguments)


def launched(step: Step) -> KernelLaunch:
    assert isinstance(step, KernelLaunch)
    return step


def test_an_inner_call_without_a_convention_is_declined_by_name() -> None:
    with pytest.raises(Declined, match="built from linalg_svd"):
        inner(FakeKernels({}), "linalg_svd", torch.zeros(1))


def test_a_roll_puts_the_end_before_the_beginning() -> None:
    x, result = torch.arange(8.0).view(2, 4), torch.zeros(2, 4)
    end, beginning = map(launched, steps_of(["cat_int32_t_float_float"], "roll", result, self=x, shifts=[1], dims=[1]))
    assert end.arguments["input"].tolist() == [[3], [7]]  # type: ignore[attr-defined]
    assert beginning.arguments["input"].tolist() == [[0, 1, 2], [4, 5, 6]]  # type: ignore[attr-defined]
    copies = steps_of([], "roll", result, self=x, shifts=[3], dims=[])
    assert [step.source.tolist() for step in copies if isinstance(step, BlitCopy)] == [[5, 6, 7], [0, 1, 2, 3, 4]]


def test_a_search_has_no_more_groups_than_the_host_makes() -> None:
    boundaries, values = torch.zeros(3, 9), torch.zeros(3, 5)
    result = torch.zeros(3, 5, dtype=torch.int32)
    arguments = {"sorted_sequence": boundaries, "self": values, "out_int32": True, "side": "right"}
    (step,) = steps_of(["searchsorted_float_int"], "searchsorted.Tensor", result, **arguments)
    assert launched(step).arguments == {
        "data_in": values,
        "data_bd": boundaries,
        "data_out": result,
        "idim_in": 5,
        "idim_bd": 9,
        "numel_in": 15,
        "right": 1,
        "is_1d_boundaries": 0,
    }
    assert (launched(step).threads, launched(step).group) == ((15, 1, 1), (15, 1, 1))
    many, places = torch.zeros(3000), torch.zeros(3000, dtype=torch.int64)
    (step,) = steps_of(["searchsorted_float_long"], "bucketize.Tensor", places, self=many, boundaries=boundaries[0])
    assert launched(step).threads == (3072, 1, 1)
    assert launched(step).arguments["data_bd"] is not launched(step).arguments["data_in"]
