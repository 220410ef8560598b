"""How the shape of a result follows from the arguments of the calls that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mpsmith.scaffold.operators.observation import Size
from mpsmith.scaffold.operators.shape_rules import ObservedCall, requesting_flag, shape_rule, size_rules


def seen(result: Sequence[int], **arguments: Any) -> ObservedCall:
    """A call of tensors that are given by their shapes, and of anything else."""
    tensors = {name: torch.empty(value) for name, value in arguments.items() if isinstance(value, torch.Size)}
    optional = {name for name in arguments if name.startswith("optional")}
    return ObservedCall(
        "float32", arguments | tensors, tensors, frozenset(arguments.keys() - optional), [torch.empty(tuple(result))]
    )


class TestShapeRules:
    def test_a_shape_like_an_input_comes_before_its_dimensions(self) -> None:
        calls = [seen((3, 4), self=torch.Size((3, 4))), seen((5,), self=torch.Size((5,)))]
        assert shape_rule(calls, 0) == "like self"

    def test_reduced_by_dim_and_keepdim(self) -> None:
        calls = [
            seen((3,), self=torch.Size((3, 4)), dim=1, keepdim=False),
            seen((1, 4), self=torch.Size((3, 4)), dim=0, keepdim=True),
        ]
        assert shape_rule(calls, 0) == "reduced"

    def test_different_shapes_have_no_rule(self) -> None:
        assert shape_rule([seen((3,), self=torch.Size((3, 4))), seen((9,), self=torch.Size((3, 4)))], 0) == ""


class TestSizeRules:
    def test_leading_dimensions_then_those_of_a_list(self) -> None:
        calls = [
            seen((2, 3, 4, 5), self=torch.Size((2, 3, 8, 9)), output_size=[4, 5]),
            seen((3, 1, 7), self=torch.Size((3, 6, 6)), output_size=[1, 7]),
        ]
        assert size_rules(calls, 0) == (
            Size("leading", "self", 2),
            Size("item", "output_size", 0),
            Size("item", "output_size", 1),
        )

    def test_pairs_of_rows(self) -> None:
        calls = [seen((10,), self=torch.Size((5, 3))), seen((6,), self=torch.Size((4, 3)))]
        assert size_rules(calls, 0) == (Size("pairs", "self", 0),)

    def test_dimensions_of_two_tensors_and_a_number(self) -> None:
        calls = [
            seen((2, 7, 9), self=torch.Size((2, 3)), other=torch.Size((3, 7)), n=9),
            seen((4, 5, 8), self=torch.Size((4, 6)), other=torch.Size((6, 5)), n=8),
        ]
        assert size_rules(calls, 0) == (Size("leading", "self", 1), Size("size", "other", 1), Size("number", "n"))

    def test_one_shape_alone_says_nothing(self) -> None:
        assert size_rules([seen((10,), self=torch.Size((5, 3)))] * 2, 0) == ()

    def test_one_element_always(self) -> None:
        assert size_rules([seen((1,), self=torch.Size((5, n))) for n in (3, 4)], 0) == (Size("fixed", "", 1),)

    def test_optional_arguments_give_no_dimension(self) -> None:
        calls = [seen((n,), self=torch.Size((3, 3)), optional=torch.Size((n,))) for n in (7, 8)]
        assert size_rules(calls, 0) == ()

    def test_ranks_that_differ_otherwise_have_no_rule(self) -> None:
        assert size_rules([seen((7,), self=torch.Size((3, 3))), seen((7, 9), self=torch.Size((3, 3)))], 0) == ()

    def test_a_dimension_that_depends_on_a_flag(self) -> None:
        shapes = {(3, 5): (3, 3), (5, 3): (5, 3), (4, 4): (4, 4)}
        calls = [seen(thin, A=torch.Size(A), full=False) for A, thin in shapes.items()]
        calls += [seen((A[0], A[0]), A=torch.Size(A), full=True) for A in shapes]
        assert size_rules(calls, 0) == (
            Size("leading", "A", 1),
            Size("size", "A", 0, requested_by="full", otherwise=Size("lesser", "A")),
        )

    def test_optional_arguments_give_no_shape(self) -> None:
        calls = [seen((n,), self=torch.Size((3, 3)), optional=torch.Size((n,))) for n in (7, 8)]
        assert shape_rule(calls, 0) == ""


class TestAskingFlags:
    def test_a_result_that_is_not_requested_has_no_elements(self) -> None:
        calls = [seen((0,), A=torch.Size((3, 5)), factors=False), seen((3, 5), A=torch.Size((3, 5)), factors=True)]
        assert requesting_flag(calls, 0) == "factors"

    def test_results_that_are_always_empty_hang_on_nothing(self) -> None:
        calls = [seen((0,), A=torch.Size((0, 5)), factors=flag) for flag in (True, False)]
        assert requesting_flag(calls, 0) == ""

    def test_a_result_with_elements_either_way_depends_on_no_flag(self) -> None:
        calls = [seen((n,), A=torch.Size((3, 5)), factors=flag) for n, flag in ((3, True), (1, False))]
        assert requesting_flag(calls, 0) == ""
