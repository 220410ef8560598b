"""Special values stand where their titles say, in tensors that hold numbers, and nowhere that they are undefined."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.special_values import (
    SPECIAL_VALUE_FACTOR,
    ValuePlan,
    varied_tensors,
    with_special_values,
)
from mpsmith.audit.cases.sources.unsafe_values import bare, excluded, is_kept_as_given, writes_by_name
from mpsmith.audit.cases.sources.value_classes import classes
from mpsmith.audit.model.case import Case
from support.source_cases import cases_of_group

OPINFOS = VariedSource(SPECIAL_VALUE_FACTOR, OpInfoSource())


def made(operator: str, dtype: str = "float32", source: VariedSource = OPINFOS, variant: str = "") -> list[Case]:
    return cases_of_group(source, operator, dtype, variant)


def put(title: str, values: Tensor, which: int = 0) -> Tensor:
    return classes(values.dtype)[title].change(values.clone(), which)


def nan_at(title: str, count: int) -> list[int]:
    return put(title, torch.ones(count)).isnan().nonzero().flatten().tolist()


def test_nan_is_put_first_in_the_middle_last_and_in_whole_rows() -> None:
    assert nan_at("nan first", 5) == [0]
    assert nan_at("nan middle", 5) == [2]
    assert nan_at("nan last", 5) == [4]
    assert nan_at("nan", 7) == [0, 3, 6]
    rows = put("nan in whole rows", torch.ones(2, 3)).isnan()
    assert rows.tolist() == [[True, True, True], [True, False, False]]
    assert bool(put("nan in whole rows", torch.ones(())).isnan())


def test_floating_classes_match_their_names() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert put("infinities", x).tolist() == [math.inf, 2, 3, -math.inf]
    assert put("one infinity", x).tolist() == [1, 2, math.inf, 4]
    assert math.copysign(1, put("signed zeros", x)[3].item()) == -1
    assert 0 < put("denormals", x)[0].item() < 1.2e-38
    assert put("largest finite", x.half())[[0, 3]].tolist() == [65504, -65504]
    assert put("all equal", x).tolist() == [1, 1, 1, 1]
    assert put("zeros", x).tolist() == [0, 0, 0, 0]
    z = put("nan in an imaginary part", torch.ones(3, dtype=torch.complex64))
    assert (z[1].real.item(), math.isnan(z[1].imag.item())) == (1, True)


def test_neighbouring_integers_become_equal_when_rounded() -> None:
    x = torch.zeros(8, dtype=torch.int64)
    beyond = put("beyond 2^24", x)
    assert sorted(abs(v) - 2**24 for v in beyond.tolist()) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert beyond.float().abs().unique().numel() < 8
    assert (beyond < 0).sum() == 2
    further = put("beyond 2^53", x)
    assert min(further.abs().tolist()) == 2**53
    assert further.double().abs().unique().numel() < 8
    assert put("beyond 2^31", x).int().long().ne(put("beyond 2^31", x)).all()
    assert put("beyond 2^24", x, 1).tolist() != beyond.tolist()


def test_narrow_integers_have_values_that_fit() -> None:
    assert put("above 127", torch.zeros(7, dtype=torch.uint8)).tolist() == [128, 0, 0, 200, 0, 0, 254]
    assert put("extreme integers", torch.zeros(4, dtype=torch.int8)).tolist() == [127, 0, 0, -128]
    assert put("negative", torch.tensor([-3, 0, 4])).tolist() == [-4, -1, -5]
    assert "beyond 2^31" not in classes(torch.int32)
    assert set(classes(torch.bool)) == {"all true", "all false"}


def test_each_tensor_gets_nan_alone() -> None:
    cases = made("cdist")
    alone = [case for case in cases if case.title.startswith("nan middle in tensor")]
    with_nan = [[bool(arg.isnan().any()) for arg in case.args if isinstance(arg, Tensor)] for case in alone]
    assert with_nan[:2] == [[True, False], [False, True]]
    assert {case.values for case in alone} == {"nan"}
    assert all(case.errors_count and not case.differentiable for case in cases)


def test_operators_that_are_not_reductions_get_all_classes() -> None:
    titles = {case.title for case in made("cummax")}
    assert {"nan", "nan first", "nan middle", "nan last", "infinities", "all equal", "zeros"} <= titles
    assert {"beyond 2^24", "beyond 2^53", "extreme integers"} <= {case.title for case in made("sort", "int64")}


def test_modules_and_remembered_calls_get_them_too() -> None:
    modules, schemas = (
        VariedSource(SPECIAL_VALUE_FACTOR, ModuleSource()),
        VariedSource(SPECIAL_VALUE_FACTOR, SchemaSource()),
    )
    weights = [case.args[0] for case in made("nn.BatchNorm2d", source=modules, variant="eval")]
    assert any(bool(state["running_mean"].isnan().any()) for state in weights)
    assert {case.values for case in made("threshold_backward", source=schemas)} == {"nan", "infinities"}
    assert [case.title for case in made("cummax.out", source=schemas)] == ["nan"]
    # Who moves elements keeps the sign of a zero, by whatever name and in half precision, too.
    assert [case.title for case in made("index.Tensor_out", source=schemas)] == ["nan", "signed zeros"]
    assert "signed zeros" in {case.title for case in made("index_select", "bfloat16")}


def call(*args: object, **kwargs: object) -> None:
    """Stands for an operator."""


def test_positions_get_no_values() -> None:
    case = Case(call, (torch.ones(3, dtype=torch.int64), 0, torch.tensor([0, 2])))
    assert varied_tensors(case, "gather", torch.int64) == [0]
    assert varied_tensors(case, "eq", torch.int64) == [0, 1]
    assert is_kept_as_given("index_select", "index", integers=True)
    assert not is_kept_as_given("index_select", "index", integers=False)
    assert is_kept_as_given("quantile", 1, integers=False)
    assert not is_kept_as_given("quantile", 0, integers=False)


def test_empty_and_other_tensors_stay() -> None:
    empty, other = torch.ones(0), torch.ones(2, dtype=torch.int32)
    assert list(with_special_values(Case(call, (empty, other)), "add", "float32", ValuePlan(("nan",)))) == []
    x = torch.ones(2, requires_grad=True)
    (varied,) = with_special_values(Case(call, ([x, other],), {"y": x}), "add", "float32", ValuePlan(("nan",)))
    assert (varied.args[0][0].isnan().sum(), varied.kwargs["y"].isnan().sum()) == (1, 1)
    assert varied.args[0][1] is other
    assert not x.isnan().any()


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("nn.functional.softshrink", "softshrink"),
        ("linalg.svd", "linalg_svd"),
        ("linalg_svd.U", "linalg_svd"),
        ("special.i0", "i0"),
        ("cummax.out", "cummax"),
        ("nn.Transformer", "nn.Transformer"),
    ],
)
def test_an_operator_has_one_name_in_all_sources(operator: str, name: str) -> None:
    assert bare(operator) == name


def test_exclusions_are_narrow() -> None:
    assert excluded("lcm", "int64", "extreme integers")
    assert not excluded("lcm", "int64", "negative")
    assert excluded("special.laguerre_polynomial_l", "int64", "negative")
    assert excluded("special.laguerre_polynomial_l", "float32", "nan")
    assert not excluded("special.laguerre_polynomial_l", "float32", "infinities")
    assert excluded("linalg_pinv.out", "float32", "nan")
    assert not excluded("linalg_pinv", "float32", "nan")
    assert excluded("int", "float32", "nan")
    assert not excluded("int", "float32", "signed zeros")


def test_overloads_that_write_are_known_by_their_names() -> None:
    assert [writes_by_name(name) for name in ("add_.Tensor", "add.out", "max.dim", "add.Tensor")] == [
        True,
        True,
        False,
        False,
    ]
