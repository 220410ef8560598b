"""Cases that would say something wrong of a right device are not made."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.judging.execution import execute, gradients
from mpsmith.audit.model.case import Case, CaseSource, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


@pytest.fixture(scope="module")
def sources() -> dict[str, CaseSource]:
    by_name = case_sources(())
    return by_name


def titled(sources: dict[str, CaseSource], source: str, operator: str, variant: str = "", dtype: str = "float32"):
    key = GroupKey(source, operator, variant, dtype, "fallback")
    return list(make_cases(sources[source], key, Samples.DEFAULT, 0).values())


def run(case: Case):
    return execute(case, (case.args, case.kwargs))


@pytest.mark.parametrize(("operator", "mixed"), [("mul", True), ("kron", False), ("nn.functional.embedding", False)])
def test_devices_are_mixed_for_elementwise_operators_alone(sources, operator: str, mixed: bool) -> None:
    titles = {case.title for case in titled(sources, "layouts", operator)}
    assert titles, "no case"
    assert ("0-dim CPU scalar" in titles) is mixed


@pytest.mark.parametrize("operator", ["_foreach_abs", "equal", "histogramdd"])
def test_operators_without_out_are_not_called_with_it(sources, operator: str) -> None:
    cases = titled(sources, "forms", operator)
    assert cases
    assert not [case.title for case in cases if case.title.startswith("out=")]


@pytest.mark.parametrize("operator", ["unbind_copy", "split_with_sizes_copy"])
def test_an_operator_that_returns_nothing_with_out_is_called_with_it(sources, operator: str) -> None:
    (case,) = [case for case in titled(sources, "forms", operator) if case.title == "out= exact"]
    assert any(value is True for value in run(case).outputs)


@pytest.mark.parametrize("operator", ["svd", "linalg.svd", "pca_lowrank", "to_sparse"])
def test_gradients_are_not_picked_from_as_the_outputs_are(sources, operator: str) -> None:
    (case,) = [case for case in titled(sources, "forms", operator) if case.title == "second derivative"]
    execution = run(case)
    if execution.differentiable:
        gradients(execution, [torch.ones_like(output) for output in execution.differentiable])


@pytest.mark.parametrize("operator", ["nn.LazyConv1d", "nn.LazyConvTranspose3d"])
def test_lazy_modules_have_parameters(sources, operator: str) -> None:
    cases = titled(sources, "modules", operator, "train")
    assert cases
    for case in cases:
        assert len(run(case).inputs) >= 2


@pytest.mark.parametrize(("dtype", "varied"), [("int32", False), ("int64", False), ("int8", True), ("float32", True)])
def test_polynomials_are_not_asked_for_extreme_degrees(sources, dtype: str, varied: bool) -> None:
    key = GroupKey("opinfo", "special.laguerre_polynomial_l", "", dtype, "fallback")
    assert sources["special values"].varies(key) is varied  # type: ignore[attr-defined]


def test_batch_sizes_are_compared_as_numbers(sources) -> None:
    for case in titled(sources, "schema", "_pack_padded_sequence"):
        assert not [value for value in run(case).outputs[1:] if isinstance(value, torch.Tensor)]
