"""Sizes change where dimensions belong together, and get as large as their titles say."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.dimensions import Dimensions, Results, results_of, stretched
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.sizes import (
    FULL,
    MOST_ELEMENTS,
    SIZE_FACTOR,
    SizePlan,
    checks_sizes,
    in_every_size,
    largest_size,
)
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.nested import leaves
from support.source_cases import cases_by_title

OPINFOS = VariedSource(SIZE_FACTOR, OpInfoSource())


def made(operator: str, dtype: str = "float32", source: CaseSource = OPINFOS, variant: str = "") -> dict[str, Case]:
    return cases_by_title(source, operator, dtype, variant)


def shapes(case: Case) -> list[tuple[int, ...]]:
    return [tuple(leaf.shape) for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]


def places(case: Case) -> list[set[tuple[int, int]]]:
    return [set(axis.places) for axis in Dimensions(case).axes]


# ---- which dimensions belong together


def test_a_call_with_a_result_of_gigabytes_is_not_made_on_the_cpu() -> None:
    devices: list[str] = []

    def kron(x: Tensor, y: Tensor) -> Tensor:
        devices.append(x.device.type)
        return torch.kron(x, y)

    x = torch.ones(11, 11, 11, 11)
    assert results_of(Case(kron, (x, x.clone()))) is None
    assert devices == ["meta"]
    assert results_of(Case(kron, (x[0], x[0].clone()))) == Results(1, 11**6)


def test_a_call_that_looks_at_values_is_made_on_the_cpu_alone() -> None:
    x = torch.ones(1_100)
    assert results_of(Case(lambda x, y: x.nonzero() + int(y[0]), (x, x.clone()))) == Results(1, 1_100)


def test_rows_columns_and_inner_dimensions_are_separate_axes() -> None:
    x = torch.ones(5, 5)
    assert places(Case(torch.mm, (x, x.clone()))) == [{(0, 0)}, {(0, 1), (1, 0)}]
    (columns,) = Dimensions(Case(torch.mm, (x, x.clone()))).further_axes
    assert columns.places == {(1, 1)}


def test_elementwise_tensors_change_together_and_broadcast_ones_stay() -> None:
    x = torch.ones(2, 5, 5)
    assert places(Case(torch.add, (x, x.clone()))) == [{(0, d), (1, d)} for d in range(3)]
    assert places(Case(torch.add, (x, torch.ones(5, 1)))) == [{(0, 0)}, {(0, 1), (1, 0)}, {(0, 2)}]


def test_features_change_with_their_weights_and_with_lists_of_sizes() -> None:
    norm = Case(torch.nn.functional.layer_norm, (torch.ones(4, 6), [6], torch.ones(6), torch.ones(6)))
    dimensions = Dimensions(norm)
    rows, features = dimensions.axes
    assert rows.places == {(0, 0)}
    assert features.places == {(0, 1), (1, 0), (2, 0)}
    larger = dimensions.resized({features: 9})
    assert larger.args[1] == [9]
    assert shapes(larger) == [(4, 9), (9,), (9,)]
    batch = Case(torch.nn.functional.batch_norm, (torch.ones(3, 4, 5), torch.zeros(4), torch.ones(4)))
    assert places(batch)[1] == {(0, 1), (1, 0), (2, 0)}


def test_pairs_follow_from_how_results_grow() -> None:
    square = Dimensions(Case(torch.diag_embed, (torch.ones(3, 5),)))
    assert [axis.growth for axis in square.axes] == [1, 2]
    assert square.elements({square.axes[1]: 1000}) == 3 * 1000 * 1000
    assert [axis.growth for axis in Dimensions(Case(torch.sum, (torch.ones(5),))).axes] == [0]


def test_dimensions_that_cannot_change_are_not_axes() -> None:
    assert Dimensions(Case(torch.cross, (torch.ones(4, 3), torch.ones(4, 3)))).axes[0].places == {(0, 0), (1, 0)}
    assert len(Dimensions(Case(torch.cross, (torch.ones(4, 3), torch.ones(4, 3)))).axes) == 1
    assert Dimensions(Case(torch.add, (1, 2))).axes == []
    assert results_of(Case(torch.mm, (torch.ones(2, 3), torch.ones(2, 3)))) is None


def test_a_longer_tensor_repeats_few_values_and_stays_sorted_and_in_range() -> None:
    torch.manual_seed(0)
    long = stretched(torch.tensor([3.0, 1.0]), (1000,))
    assert long.unique().numel() > 900
    assert bool((long <= 3).all())
    assert stretched(torch.tensor([1.0, 2.0]), (4,)).tolist() == [1, 1, 2, 2]
    assert stretched(torch.tensor([4, 0]), (4,)).tolist() == [4, 4, 0, 0]
    assert stretched(torch.ones(3, 2), (0, 2)).shape == (0, 2)
    assert stretched(torch.tensor([5, 6, 7]), (2,)).tolist() == [5, 6]
    assert stretched(torch.ones(1, requires_grad=True), (2,)).requires_grad


# ---- the sizes


def test_a_scan_is_tried_long_in_every_way() -> None:
    cases = made("logcumsumexp")
    sizes = {title: shapes(case)[0] for title, case in cases.items()}
    assert sizes["1,025 rows"] == (1025, 2, 65)
    assert sizes["1,025 columns"] == (65, 2, 1025)
    assert sizes["257 in the last dimension"][-1] == 257
    assert [sizes[f"empty in dimension {d}"] for d in range(3)] == [(0, 5, 5), (5, 0, 5), (5, 5, 0)]
    assert sizes["one element"] == (1, 1, 1)
    assert (len(sizes["5 dimensions"]), len(sizes["6 dimensions"])) == (5, 6)
    assert sizes["65,537 in dimension 2"] == (2, 2, 65_537)
    assert sizes["65,537 in dimension 0"] == (65_537, 2, 2)
    assert all(case.errors_count for title, case in cases.items() if "dimensions" not in title)
    assert cases["1,025 rows"].differentiable


def test_vectors_get_longer_than_two_to_the_seventeen() -> None:
    assert shapes(made("sum")["131,073 in dimension 0"]) == [(131_073,)]


def test_nothing_gets_larger_than_memory_allows() -> None:
    for operator in ("kron", "outer", "cdist", "diag_embed", "combinations", "nn.functional.conv2d", "linalg.svd"):
        for title, case in made(operator).items():
            assert max(torch.Size(shape).numel() for shape in shapes(case)) <= MOST_ELEMENTS, title
            results = results_of(case)
            assert results is None or results.elements <= 2 * MOST_ELEMENTS, (operator, title)


@pytest.mark.parametrize(
    ("operator", "most"),
    [
        ("lstm.input", 33),
        ("nn.GRU", 33),
        ("linalg.svd", 1025),
        ("nn.Transformer", 33),
        ("nn.functional.multi_head_attention_forward", 257),
        ("exp", 131_073),
    ],
)
def test_costly_operators_stay_small(operator: str, most: int) -> None:
    assert largest_size(operator) == most


def test_batches_differ_from_each_other() -> None:
    case = made("matmul")["6 dimensions"]
    first = case.args[0].flatten(0, 2)
    assert not torch.equal(first[0], first[-1])


def test_modules_and_remembered_calls_get_other_sizes_too() -> None:
    modules, schemas = VariedSource(SIZE_FACTOR, ModuleSource()), VariedSource(SIZE_FACTOR, SchemaSource())
    rows = made("nn.BatchNorm2d", source=modules, variant="train")["1,025 rows"]
    assert rows.kwargs["inputs"][0].shape[0] == 1025
    assert any("dimension" in title for title in made("cummax", source=schemas))


def test_a_plan_says_how_much_is_tried() -> None:
    case = Case(torch.exp, (torch.ones(3, 4),))
    few = [varied.title for varied in in_every_size(case, SizePlan(rows=0, many=0))]
    assert few == ["empty in dimension 0", "131,073 in dimension 1"]
    assert len(list(in_every_size(case, FULL))) > len(few)


def test_parts_of_operators_get_no_tensors_that_do_not_fit() -> None:
    norm = (torch.ones(2, 3, 3), torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), True, 0.1, 1e-5)
    dimensions = Dimensions(Case(torch.native_batch_norm, norm), checks=False)
    assert [axis.places for axis in dimensions.axes] == [{(0, 0)}, {(0, 1), (0, 2), (1, 0), (2, 0), (3, 0), (4, 0)}]
    opinfos = OpInfoSource()
    assert checks_sizes(opinfos, "nn.functional.batch_norm")
    assert checks_sizes(opinfos, "_foreach_add")
    assert not checks_sizes(opinfos, "_batch_norm_with_update")
    assert not checks_sizes(opinfos, "torch.ops.aten._native_batch_norm_legit")
    assert not checks_sizes(SchemaSource(), "add.out")


def test_half_precision_counts_beyond_two_thousand() -> None:
    for source in (VariedSource(SIZE_FACTOR, OpInfoSource()), VariedSource(SIZE_FACTOR, SchemaSource())):
        longest = [max(shapes(case)[0]) for case in made("cumsum", "bfloat16", source).values()]
        assert longest == [4_097] * len(longest) != []


def test_a_kernel_all_of_whose_sizes_grow_is_not_tried_with_millions_of_elements() -> None:
    """In halves the CPU takes a minute for it; and no sizes are tried twice."""
    tried: list[int] = []

    def padded(image: Tensor, kernel: Tensor) -> Tensor:
        tried.extend([kernel.numel()] if kernel.is_cpu else [])
        return torch.conv3d(image, kernel, padding="same")

    case = Case(padded, (torch.ones(3, 3, 4, 4, 4), torch.ones(3, 3, 3, 3, 3)), {})
    assert [axis.growth for axis in Dimensions(case, checks=False).axes] == [2.0, 3.0]
    assert tried == [3**5, 11**5, 13**5, 3**5, 3**5]
