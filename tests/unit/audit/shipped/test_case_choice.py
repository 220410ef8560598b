"""Which cases run through shipped kernels: of every kind a few, the same whatever else is in the group."""

from __future__ import annotations

from collections import Counter

from mpsmith.audit.cases.covering.pairs import DTYPE, FORM, LAYOUT, VALUES, Levels
from mpsmith.audit.model.launches import Launches
from mpsmith.audit.model.selection import ShippedSamples
from mpsmith.audit.shipped.case_choice import MOST_ELEMENTS, PER_LEVEL, modes_of_cases, positions_through_shipped
from mpsmith.audit.shipped.case_launches import GroupComputing, host_code_launches
from mpsmith.simulator.device.launch_counts import count_launched, count_stand_in
from mpsmith.simulator.metal.modes import current_mode


def at(layout: str, values: str = "plain", **flags: str) -> Levels:
    return ((DTYPE, "float32"), (LAYOUT, layout), (VALUES, values), *flags.items())


def positions(
    *levels: Levels, samples: ShippedSamples = ShippedSamples.DEFAULT, source: str = "opinfo", size: int = 9
) -> list[int]:
    elements = dict.fromkeys(range(len(levels)), size)
    return sorted(positions_through_shipped(source, dict(enumerate(levels)), elements, samples))


def test_of_one_kind_the_first_few_are_taken() -> None:
    alike = [at("contiguous", flag=str(number)) for number in range(9)]
    assert positions(*alike) == list(range(PER_LEVEL))


def test_every_layout_and_class_of_values_is_taken_at_any_position() -> None:
    many = [at("contiguous")] * 20
    assert positions(*many, at("transposed"), at("contiguous", "nan")) == [*range(PER_LEVEL), 20, 21]


def test_a_form_is_taken_and_a_flag_alone_is_not() -> None:
    many = [at("contiguous")] * PER_LEVEL
    assert positions(*many, (*at("contiguous"), (FORM, "in place")), at("contiguous", flag="True")) == [0, 1]


def test_cases_without_levels_are_taken() -> None:
    assert positions((), ((FORM, "plain"),)) == [0, 1]


def test_all_are_taken_where_all_are_asked_for() -> None:
    assert positions(*[at("contiguous")] * 9, samples=ShippedSamples.ALL) == list(range(9))


def test_positions_are_those_of_the_cases() -> None:
    assert positions_through_shipped("opinfo", {7: at("contiguous")}, {7: 1}, ShippedSamples.DEFAULT) == {7}


def test_all_that_users_reported_is_taken() -> None:
    assert positions(*[at("contiguous")] * 9, source="known wrong") == list(range(9))


def test_large_cases_are_taken_only_with_all() -> None:
    assert positions(at("contiguous"), size=MOST_ELEMENTS) == [0]
    assert positions(at("contiguous"), size=MOST_ELEMENTS + 1) == []
    assert positions(at("contiguous"), size=MOST_ELEMENTS + 1, source="known wrong") == []
    assert positions(at("contiguous"), size=MOST_ELEMENTS + 1, samples=ShippedSamples.ALL) == [0]


def test_all_sources_are_taken_from() -> None:
    assert positions(at("contiguous"), at("contiguous"), source="pairs") == [0]
    assert positions(at("contiguous"), at("contiguous"), source="kernel sizes") == [0, 1]


def test_the_first_unvaried_case_is_checked_and_the_second_runs_in_several_orders() -> None:
    assert modes_of_cases("opinfo", {7, 4, 9}) == {4: "checked", 7: "schedules"}
    assert modes_of_cases("schema", {3}) == {3: "checked"}
    assert modes_of_cases("kernel sizes", set()) == {}
    assert modes_of_cases("layouts", {4, 7}) == {}


def test_kernels_that_host_code_launches_have_the_mode_of_their_case() -> None:
    computing = GroupComputing(None, {2: "checked", 4: "schedules"}, host_code_launches)
    modes = {}
    count_launched("neg", ["kernel_of_the_inputs"])
    for position in (2, 3, 4):
        with computing.of_case(position) as launched:
            modes[position] = current_mode("fast")
            count_launched("exp", ["exp_dense", "exp_dense"])
            count_launched("mm", [])  # a graph
            count_stand_in("sin", "no such method")
            assert launched() == {
                "aten::exp": Launches(1, Counter(exp_dense=2)),
                "aten::sin": Launches(stood_in=Counter({"no such method": 1})),
            }
    assert modes == {2: "checked", 3: "fast", 4: "schedules"}
