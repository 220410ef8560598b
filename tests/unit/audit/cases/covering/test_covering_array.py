"""A covering array holds every pair of levels that do not exclude each other, and none that do."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.audit.cases.covering.array import Excluded, Factors, covering_array, excluding
from mpsmith.audit.cases.covering.pairs import Pair, pairs_of

names = st.lists(st.sampled_from("pqrstuvw"), min_size=1, max_size=5, unique=True).map(tuple)
all_factors = st.lists(names, min_size=2, max_size=5).map(
    lambda levels: tuple((f"factor {i}", of_factor) for i, of_factor in enumerate(levels))
)


@st.composite
def models(draw: st.DrawFn) -> tuple[Factors, Excluded]:
    """Factors, and pairs of levels that exclude each other; the first level of a factor goes with everything."""
    factors = draw(all_factors)
    special = [(name, level) for name, levels in factors for level in levels[1:]]
    if not special:
        return factors, frozenset()
    pair = st.tuples(st.sampled_from(special), st.sampled_from(special))
    pairs = draw(st.lists(pair.filter(lambda two: two[0][0] != two[1][0]), max_size=6)) if len(factors) > 1 else []
    return factors, frozenset(map(frozenset, pairs))


@settings(deadline=None, max_examples=60)
@given(models())
def test_every_valid_pair_and_no_other_is_in_the_array(model: tuple[Factors, Excluded]) -> None:
    factors, excluded = model
    rows = covering_array(factors, excluded)
    assert {pair for row in rows for pair in pairs_of(row.items())} == valid_pairs(factors, excluded)


def valid_pairs(factors: Factors, excluded: Excluded) -> set[Pair]:
    """Every pair of levels of two factors that do not exclude each other."""
    return {
        ((factor, level), (other, other_level))
        for (factor, levels), (other, other_levels) in combinations(sorted(factors), 2)
        for level in levels
        for other_level in other_levels
        if frozenset(((factor, level), (other, other_level))) not in excluded
    }


def test_an_array_is_much_smaller_than_the_product() -> None:
    factors = tuple((name, tuple("abcdef")) for name in ("dtype", "layout", "size", "values", "form"))
    assert 36 <= len(covering_array(factors)) <= 60


def test_the_pairs_that_exclude_each_other() -> None:
    assert excluding(("dtype", ("int8", "bool"), "values", ("nan",))) == {
        frozenset({("dtype", "int8"), ("values", "nan")}),
        frozenset({("dtype", "bool"), ("values", "nan")}),
    }
    factors: Factors = (("dtype", ("float32", "bool")), ("values", ("plain", "nan")))
    rows = covering_array(factors, excluding(("dtype", ("bool",), "values", ("nan",))))
    assert sorted(tuple(row.values()) for row in rows) == [("bool", "plain"), ("float32", "nan"), ("float32", "plain")]


def test_one_factor_has_a_row_for_each_level() -> None:
    assert covering_array((("dtype", ("float32", "bool")),)) == ({"dtype": "float32"}, {"dtype": "bool"})
