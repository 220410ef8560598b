"""Which pairs of levels an entry's cases were at, of those that they could have been at."""

from __future__ import annotations

from dataclasses import replace

from mpsmith.audit.cases.covering.pairs import Levels
from mpsmith.audit.findings.pairs_seen import counted, pairs_seen
from mpsmith.audit.findings.results import PairsSeen
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.store.records import Covered


def group(source: str, dtype: str, *levels: Levels) -> Covered:
    return Covered(GroupKey(source, "hypot", "", dtype, "fallback"), 0, levels)


def test_pairs_of_all_sources_and_dtypes_are_put_together() -> None:
    seen = pairs_seen(
        [
            group("opinfo", "float32", (("layout", "contiguous"), ("values", "plain"))),
            group("layouts", "float32", (("layout", "offset"), ("values", "plain"))),
            group("pairs", "float16", (("layout", "contiguous"), ("values", "nan"))),
        ]
    )
    assert seen == {
        "hypot": PairsSeen(
            seen=8,
            possible=12,
            missing={
                "dtype float16": ("layout offset", "values plain"),
                "dtype float32": ("values nan",),
                "layout offset": ("values nan",),
            },
        )
    }


def test_contradictory_levels_are_not_possible() -> None:
    (pairs,) = pairs_seen(
        [
            group("pairs", "int8", (("gradient", "none"), ("values", "extreme integers"))),
            group("pairs", "float32", (("gradient", "all"), ("values", "plain"))),
            group("pairs", "float32", (("gradient", "none"), ("values", "nan"))),
        ]
    ).values()
    assert pairs.missing == {"dtype int8": ("values plain",), "gradient none": ("values plain",)}
    assert pairs.seen == pairs.possible - 2


def test_only_pairs_of_covering_arrays_are_counted() -> None:
    levels = (
        ("dtype", "float16, int64"),
        ("form", "autocast float16"),
        ("keepdim", "True"),
        ("layout", "channels last"),
        ("size", "over 131,072"),
    )
    others = (("layout", "channels last"), ("size", "over 65,536"))
    assert counted(GroupKey("schema", "sum", "", "float16", ""), levels) == (("dtype", "float16"), *others)
    assert counted(GroupKey("modules", "nn.GLU", "", "float64", ""), levels) == others
    assert counted(GroupKey("schema", "sum", "", "int8", ""), levels) == (("dtype", "float16"), *others)


def test_an_entry_without_an_executed_case_has_none() -> None:
    assert pairs_seen([group("opinfo", "float32")]) == {}


def test_levels_of_arguments_count_with_each_level_of_the_factors() -> None:
    (pairs,) = pairs_seen(
        [
            group("arguments", "float32", (("layout", "contiguous"), ("0", "tensor"), ("keepdim", "True"))),
            group("arguments", "float16", (("layout", "contiguous"), ("dimensions", "2"), ("keepdim", "False"))),
        ]
    ).values()
    # Each flag with its own dtype and the layout; the two dtypes with the other flag are missing.
    assert (pairs.with_arguments, pairs.possible_with_arguments) == (4, 6)


def test_pairs_at_which_the_cpu_refuses_each_case_are_counted_apart() -> None:
    first, second, contiguous, offset = ("0", "1"), ("0", "2"), ("layout", "contiguous"), ("layout", "offset")
    accepted = group("opinfo", "float32", (first, contiguous), (first, offset), (second, contiguous))
    refused = replace(accepted, levels=(), refused=((second, offset), (second, contiguous), (("0", "3"), offset)))
    (pairs,) = pairs_seen([accepted, refused]).values()
    # The two numbers with the dtype and both layouts; what no accepted case was at is none of the possible ones.
    assert (pairs.with_arguments, pairs.possible_with_arguments, pairs.refused_with_arguments) == (5, 6, 1)


def test_arguments_of_wrappers_and_impossible_pairs_are_not_counted() -> None:
    number = (("shapes", "others of 0 dimensions"), ("other layouts", "offset"), ("form", "plain"))
    (pairs,) = pairs_seen(
        [
            group("opinfo", "float32", number, (("other layouts", "transposed"), ("form", "plain"))),
            group("arguments", "float32", (("form", "in a row"), ("keepdim", "True"))),
        ]
    ).values()
    # With a number in a tensor the dtype, the form and the offset; it cannot be transposed.
    assert (pairs.with_arguments, pairs.possible_with_arguments) == (3, 3)


def test_calls_with_a_number_in_place_of_their_second_tensor_have_no_others() -> None:
    tensors = (("given", "2"), ("0", "tensor"), ("1", "tensor"), ("layout", "offset"), ("other layouts", "offset"))
    number = (("given", "2"), ("0", "tensor"), ("1", "positive"), ("layout", "contiguous"))
    alone = (("given", "1"), ("0", "tensor"), ("layout", "contiguous"))
    (pairs,) = pairs_seen([group("opinfo", "float32", tensors, number, alone)]).values()
    # Each of the three levels with the dtype and both layouts; of the other tensor's with "two are given" alone.
    assert (pairs.with_arguments, pairs.possible_with_arguments) == (8, 10)
    with_list = (("given", "2"), ("0", "2 of tensor"), ("1", "positive"), ("layout", "contiguous"))
    (pairs,) = pairs_seen([group("opinfo", "float32", tensors, number, alone, with_list)]).values()
    assert pairs.possible_with_arguments == 12, "the first argument may hold several"


def test_calls_with_out_have_no_gradient_and_targets_of_one_dimension_no_order() -> None:
    plain, output = (
        (("given", "1 output_size"), ("form", "in place")),
        (("given", "1 output_size"), ("gradient", "all")),
    )
    target = (("given", "1 out"), ("shapes", "others of 1 dimensions"), ("form", "out= transposed"))
    (pairs,) = pairs_seen([group("opinfo", "float32", plain, output, target[:1], target[1:])]).values()
    # Two of `given` and the shapes with a dtype, two forms and a gradient; "out" goes with two less.
    assert (pairs.with_arguments, pairs.possible_with_arguments) == (6, 10)
    (pairs,) = pairs_seen([group("schema", "float32", target[:1], target[1:])]).values()
    assert (pairs.with_arguments, pairs.possible_with_arguments) == (3, 3), "each call has a target among the others"
