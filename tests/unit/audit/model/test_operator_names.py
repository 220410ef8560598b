"""Which groups an operator's name matches, in the spellings of all sources."""

from __future__ import annotations

import pytest

from mpsmith.audit.model.operator_names import matching
from mpsmith.errors import MpsmithError

POW = {"pow", "pow.Tensor_Tensor", "pow.Tensor_Tensor_out", "pow_.Scalar", "pow.Scalar_out", "float_power"}
SOFTMAX = {"softmax", "softmax.int", "_softmax", "_softmax.out", "nn.Softmax", "log_softmax", "masked.softmax"}
NAMES = {
    *POW,
    *SOFTMAX,
    "nn.functional.gelu",
    "nn.GELU",
    "nn.LogSoftmax",
    "gelu",
    "gelu_backward",
    "linalg.svd",
    "linalg_svd.U",
    "linalg.det",
    "__and__.Tensor",
    "torch.ops.aten._safe_softmax.default",
    "special.entr",
    "masked.mean",
}


@pytest.mark.parametrize("name", ["pow", "aten::pow"])
def test_a_name_selects_all_overloads_of_the_operator(name: str) -> None:
    assert matching(name, NAMES) == POW - {"float_power"}


def test_an_overload_selects_its_own_groups() -> None:
    assert matching("pow.Tensor_Tensor", NAMES) == {"pow.Tensor_Tensor"}
    assert matching("pow_", NAMES) == {"pow_.Scalar"}


def test_an_aten_name_also_selects_possible_callers() -> None:
    assert matching("aten::pow.Tensor_Tensor", NAMES) == {"pow.Tensor_Tensor", "pow"}
    assert matching("aten::_softmax", NAMES) == {"_softmax", "_softmax.out", "softmax", "nn.Softmax"}
    assert matching("aten::gelu_backward", NAMES) == {"gelu_backward", "gelu", "nn.functional.gelu", "nn.GELU"}


def test_an_overload_without_a_source_selects_possible_callers() -> None:
    assert matching("pow.Tensor_Scalar", NAMES) == {"pow"}


@pytest.mark.parametrize("name", ["gelu", "nn.functional.gelu"])
def test_a_function_and_its_module_and_its_schema_are_one_operator(name: str) -> None:
    assert matching(name, NAMES) == {"nn.functional.gelu", "nn.GELU", "gelu"}
    assert matching("log_softmax", NAMES) == {"log_softmax", "nn.LogSoftmax"}


@pytest.mark.parametrize("name", ["linalg.svd", "linalg_svd", "aten::linalg_svd"])
def test_a_namespace_may_be_written_with_a_dot_or_an_underscore(name: str) -> None:
    assert matching(name, NAMES) == {"linalg.svd", "linalg_svd.U"}


def test_a_shell_pattern_selects_all_names_that_it_matches() -> None:
    assert matching("linalg.*", NAMES) == {"linalg.svd", "linalg_svd.U", "linalg.det"}
    assert matching("pow.*_out", NAMES) == {"pow.Tensor_Tensor_out", "pow.Scalar_out"}


@pytest.mark.parametrize("namespace", ["linalg", "masked", "special", "nn"])
def test_a_namespace_alone_is_not_an_operator(namespace: str) -> None:
    with pytest.raises(MpsmithError, match=f"^no cases for operator '{namespace}'"):
        matching(namespace, NAMES)


def test_operators_with_underscores_in_their_names() -> None:
    assert matching("__and__", NAMES) == {"__and__.Tensor"}
    assert matching("_safe_softmax", NAMES) == {"torch.ops.aten._safe_softmax.default"}


def test_near_names_are_suggested() -> None:
    with pytest.raises(MpsmithError, match=r"no cases for operator 'aten::powr' \(did you mean pow"):
        matching("aten::powr", NAMES)


@pytest.mark.parametrize("pattern", ["nn.functional.*", "nn.functional.g?lu"])
def test_a_pattern_of_functions_selects_only_operators_of_these_functions(pattern: str) -> None:
    assert matching(pattern, NAMES) == {"nn.functional.gelu", "nn.GELU", "gelu"}
