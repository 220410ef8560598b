"""The levels of a case, read from its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.covering.levels import kind_of, layout_of, levels_of, size_of
from mpsmith.audit.cases.covering.pairs import pairs_of
from mpsmith.audit.model.case import Case


def levels(*args: Any, **fields: Any) -> dict[str, str]:
    return dict(levels_of(Case(torch.add, args, **fields)))


def test_a_case_is_at_a_level_of_each_factor() -> None:
    case = Case(
        torch.add,
        (torch.zeros(2, 3, dtype=torch.float16).t(), torch.zeros(3, dtype=torch.int64)),
        {"alpha": 2.5, "out": None},
        values="nan",
        form="in place",
    )
    assert dict(levels_of(case)) == {
        "values": "nan",
        "form": "in place",
        "given": "2 alpha out",
        "dtype": "float16, int64",
        "layout": "transposed",
        "size": "small",
        "dimensions": "2",
        "gradient": "none",
        "other layouts": "contiguous",
        "shapes": "others of 1 dimensions",
        "storage": "own",
        "0": "tensor",
        "1": "tensor",
        "alpha": "positive",
        "out": "None",
    }


def test_a_case_without_tensors_has_its_flags() -> None:
    assert levels(3, "reflect") == {"values": "plain", "form": "plain", "given": "2", "0": "positive", "1": "reflect"}


LAYOUTS: list[tuple[str, Callable[[], Tensor]]] = [
    ("contiguous", lambda: torch.zeros(2, 3)),
    ("contiguous", lambda: torch.tensor(1.0)),
    ("transposed", lambda: torch.zeros(2, 3).t()),
    ("offset", lambda: torch.zeros(7)[1:]),
    ("stepped", lambda: torch.zeros(3, 8)[:, ::2]),
    ("rows with gaps", lambda: torch.zeros(3, 8)[:, :5]),
    ("expanded", lambda: torch.zeros(1, 4).expand(3, 4)),
    ("overlapping", lambda: torch.zeros(10).as_strided((3, 4), (2, 1))),
    ("channels last", lambda: torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)),
    ("channels last", lambda: torch.zeros(2, 3, 4, 5, 6).contiguous(memory_format=torch.channels_last_3d)),
    ("conjugate view", lambda: torch.zeros(2, dtype=torch.complex64).conj()),
    ("negative view", lambda: torch._neg_view(torch.zeros(2))),
    ("sparse_coo", lambda: torch.zeros(2, 3).to_sparse()),
]


@pytest.mark.parametrize(("level", "make"), LAYOUTS)
def test_a_layout_follows_from_the_strides(level: str, make: Callable[[], Tensor]) -> None:
    assert layout_of(make()) == level


@pytest.mark.parametrize(
    ("level", "shape"),
    [
        ("empty", (3, 0)),
        ("one element", (1, 1)),
        ("small", (1024, 2)),
        ("over 1,024 rows", (1025, 2)),
        ("small", (1025,)),
        ("small", (1, 65_536)),
        ("over 65,536", (65_537,)),
        ("over 65,536", (131_072,)),
        ("over 131,072", (131_073,)),
    ],
)
def test_a_size_is_that_of_the_largest_tensor(level: str, shape: tuple[int, ...]) -> None:
    assert size_of([torch.zeros(2 if level != "one element" else 1), torch.zeros(shape)]) == level


@pytest.mark.parametrize(
    ("wanted", "differentiable", "level"),
    [
        ((True, True), True, "all"),
        ((True, False), True, "subset"),
        ((False, False), True, "none"),
        ((True, True), False, "none"),
    ],
)
def test_gradients_of_all_some_or_none(wanted: tuple[bool, bool], differentiable: bool, level: str) -> None:
    tensors = [torch.zeros(2, requires_grad=required) for required in wanted]
    indices = torch.zeros(2, dtype=torch.int64)  # no dtype that could have one
    assert levels(*tensors, indices, differentiable=differentiable)["gradient"] == level


def test_storages_of_several_tensors() -> None:
    tensor = torch.zeros(4)
    assert levels(tensor, tensor)["storage"] == "one tensor twice"
    assert levels(tensor[:2], tensor[1:3])["storage"] == "shared"
    assert levels(tensor[:2], torch.zeros(2))["storage"] == "own"


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (None, "None"),
        (True, "True"),
        (0, "0"),
        (-1, "-1"),
        (3, "positive"),
        (-7, "negative"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.5, "fraction"),
        (7.5, "positive"),
        (-0.5, "negative"),
        (float("nan"), "nan"),
        ("mean", "mean"),
        (torch.float16, "torch.float16"),
        ([0, 1], "2 of 0 and 1"),
        ((5, 7, 9, 11), "many of positive"),
        ([], "none in a list"),
        ([torch.zeros(1)] * 3, "3 of tensor"),
        (slice(0, 1), "slice"),
    ],
)
def test_a_flag_is_at_the_kind_of_its_value(value: Any, level: str) -> None:
    assert kind_of(value) == level


def test_pairs_have_one_order() -> None:
    assert set(pairs_of((("b", "1"), ("a", "2"), ("c", "3")))) == {
        (("a", "2"), ("b", "1")),
        (("a", "2"), ("c", "3")),
        (("b", "1"), ("c", "3")),
    }
