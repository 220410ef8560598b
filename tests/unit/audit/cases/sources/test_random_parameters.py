"""What is said of drawn numbers, and that the CPU's own generator passes all of it."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall, overload_of
from mpsmith.audit.cases.sources.random_parameters import (
    DRAWN,
    DRAWS,
    a_permutation,
    alternating,
    certain,
    concatenated,
    distinct_rows,
    full,
    plain,
    rows,
    rows_sum_to_one,
    values,
    whole_channels,
    within,
)
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.schema_random import (
    SchemaRandomSource,
    draws_by_itself,
    mask_of_the_gradient,
    with_generator,
)
from mpsmith.audit.judging.distributions import FALSE_ALARM_RATE, FEWEST_DRAWS
from mpsmith.audit.model.nested import leaves
from support.source_cases import cases_by_title

SOURCE = SchemaRandomSource(SchemaSource())


def test_descriptions_of_numbers() -> None:
    assert values(torch.tensor([2.0, 0.0, 2.0])) == "draws 0, 2"
    assert values(torch.tensor([4 / 3])) == "draws 1.33"
    assert within(0, 10)(torch.tensor([0.1, 9.9])) == "all in [0, 10], near the ends: [True, True]"
    assert within(0, 10)(torch.tensor([0.1, 9.0])) == "all in [0, 10], near the ends: [True, False]"
    assert within(0, 10)(torch.tensor([0.1, 10.1])).startswith("some outside [0, 10]")
    assert within(0, float("inf"))(torch.tensor([1e9])) == "all in [0, inf]"
    assert distinct_rows(torch.tensor([[1, 3], [3, 1]])) == "no row has a number twice; draws 1, 3"
    assert distinct_rows(torch.tensor([[1, 3], [3, 3]])) == "some row has a number twice; draws 1, 3"
    assert a_permutation(torch.tensor([2, 0, 1])) == "a permutation"
    assert a_permutation(torch.tensor([2, 0, 2])) == "no permutation"
    assert rows_sum_to_one(torch.tensor([[0.25, 0.75]])) == "rows sum to one"
    assert rows_sum_to_one(torch.tensor([[0.25, 0.70]])) == "rows do not"
    assert whole_channels(torch.tensor([[[2.0, 2.0], [0.0, 0.0]]])) == "whole channels; draws 0, 2"
    assert whole_channels(torch.tensor([[[2.0, 0.0], [0.0, 0.0]]])) == "parts of channels; draws 0, 2"


def test_an_out_form_has_the_distribution_of_its_functional_form() -> None:
    """Each call gets its own out= tensor: the numbers of the last one must not replace all."""
    (case,) = (
        case
        for title, case in cases_by_title(SOURCE, "normal.float_Tensor_out").items()
        if title.startswith("distribution")
    )
    numbers, *_ = case.call(*case.args, **case.kwargs)
    assert case.distribution
    assert len(numbers.unique()) > FEWEST_DRAWS
    assert numbers.unique().numel() > numbers.numel() / 4
    assert abs(numbers.double().mean() - 2) < 0.2


def test_arguments_are_filled_as_their_names_say() -> None:
    assert alternating(torch.float32, 5, 0, 1).tolist() == [0, 1, 0, 1, 0]
    assert rows(1, 2, 5)(torch.float32, 6)[0].tolist() == [[1, 2, 5], [1, 2, 5]]
    assert concatenated(full(2), plain(3, True))(torch.float32, 1) == (torch.tensor([2.0]), 3, True)
    assert DRAWN == 1536


def test_every_call_of_the_table_is_of_an_overload_that_draws() -> None:
    for draw in DRAWS:
        tags = overload_of(f"aten::{draw.overload}").tags
        assert torch.Tag.nondeterministic_seeded in tags, draw.overload


def test_the_false_alarm_limit() -> None:
    assert FALSE_ALARM_RATE == 1e-6
    assert FEWEST_DRAWS == 458


def test_parameters_are_certain_or_a_distribution() -> None:
    cases = cases_by_title(SOURCE, "bernoulli_.float")
    assert list(cases)[:2] == ["under seeds", "generator="]
    assert {title for title in cases if "0.0" in title or "1.0" in title} == {"certain: 0.0", "certain: 1.0"}
    assert {"certain: 0.1", "distribution: 0.1", "one at a time: 0.1", "distribution: 0.9"} <= set(cases)
    assert cases["distribution: 0.1"].distribution
    checked, _ = cases["certain: 0.1"].call(*cases["certain: 0.1"].args)
    assert checked == "draws 0, 1"


def test_certain_cases_change_neither_generator_nor_argument() -> None:
    case = cases_by_title(SOURCE, "random_.from")["certain: 2, 6"]
    before = torch.default_generator.get_state()
    checked, stride = case.call(*case.args)
    assert (checked, stride) == ("draws 2, 3, 4, 5", [1])
    assert torch.equal(before, torch.default_generator.get_state())
    assert float(case.args[0].abs().max()) == 0


def test_a_generator_is_given_and_the_global_one_left_alone() -> None:
    sound = (
        "its seed gives the same numbers again",
        "another seed gives other numbers",
        "further calls give other numbers",
        "the global generator is as it was",
        "without it, two global seeds give other numbers",
    )
    assert with_generator(SchemaCall("aten::uniform_"))(torch.zeros(8)) == sound
    case = cases_by_title(SOURCE, "randn.generator")["generator="]
    assert case.call(*case.args, **case.kwargs) == sound

    class Deaf(SchemaCall):
        def __call__(self, *args: object, **kwargs: object) -> object:
            return super().__call__(*args, **{**kwargs, "generator": None})

    words = with_generator(Deaf("aten::uniform_"))(torch.zeros(8))
    assert words[0] == "its seed gives other numbers again"
    assert words[3] == "the global generator is changed"


def test_the_gradient_has_the_mask_of_the_forward() -> None:
    x = -torch.ones(32, 4, 3)
    for operator, parameters in (("dropout", (0.5, True)), ("alpha_dropout", (0.5, True)), ("rrelu", (0.1, 0.9, True))):
        words = mask_of_the_gradient(SchemaCall(f"aten::{operator}"), parameters)(x)
        assert words == "the gradient is the forward's"

    def other_mask(x: torch.Tensor) -> torch.Tensor:
        mask = (torch.arange(x.numel()) % 3 > 0).reshape(x.shape).float()
        return x.detach() * mask + (x - x.detach()) * mask.roll(1, -1)

    assert mask_of_the_gradient(other_mask, ())(x) == "the gradient has another mask"


def test_generated_out_forms_do_not_draw_by_themselves() -> None:
    assert draws_by_itself("cauchy_")
    assert draws_by_itself("randperm.generator_out")
    assert draws_by_itself("cauchy")
    assert not draws_by_itself("cauchy.out")
    assert not draws_by_itself("exp")


def test_parameters_in_tensors_are_not_all_integers() -> None:
    """A kernel that makes integers of them draws otherwise then."""
    for overload in ("normal.float_Tensor", "normal.Tensor_Tensor", "_sample_dirichlet", "multinomial"):
        given = [
            draw.make(torch.float32, 12) for draw in DRAWS if draw.overload == overload and draw.check is not certain
        ]
        tensors = [leaf for leaf in leaves(given) if isinstance(leaf, torch.Tensor)]
        assert any(bool((tensor != tensor.trunc()).any()) for tensor in tensors), overload
