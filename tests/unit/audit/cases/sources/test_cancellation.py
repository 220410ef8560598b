"""Which samples the source varies, and into which ranges of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
import torch

from mpsmith.audit.cases.sources.cancellation import CANCELLATION_FACTOR
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


class Given(CaseSource):
    """A source of given cases."""

    name = "opinfo"

    def __init__(self, *cases: Case, operator: str = "exp", dtype: str = "float32") -> None:
        self._cases = cases
        self.key = GroupKey(self.name, operator, "", dtype, "fallback")

    def groups(self) -> Iterable[GroupKey]:
        yield self.key

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        yield from self._cases


def varied(*cases: Case, operator: str = "exp") -> list[Case]:
    source = VariedSource(CANCELLATION_FACTOR, Given(*cases, operator=operator))
    (key,) = source.groups()
    return list(source.cases(key, Samples.DEFAULT))


def test_a_sample_is_tried_near_zero_with_a_large_mean_and_with_large_values() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    cases = varied(Case(torch.exp, (x,), differentiable=True))
    assert [case.values for case in cases] == ["near zero", "large mean", "large"]
    assert [case.args[0].tolist() for case in cases] == [[2.0**-12, -(2.0**-11)], [2001.0, 1998.0], [128.0, -256.0]]
    assert all(case.args[0].requires_grad and case.args[0].is_leaf for case in cases)
    assert all(case.differentiable and case.errors_count for case in cases)
    assert x.tolist() == [1.0, -2.0]


def test_weights_and_statistics_stay_as_they_are() -> None:
    x, weight, count = torch.ones(2, 3), torch.ones(3), torch.ones(2, 3, dtype=torch.int64)
    for case in varied(Case(torch.exp, (x, weight, count), {"scale": 2.0})):
        assert case.args[1] is weight
        assert case.args[2] is count
        assert case.kwargs == {"scale": 2.0}


def test_a_tensor_that_is_given_twice_stays_one() -> None:
    x = torch.ones(3)
    assert all(case.args[0] is case.args[1] for case in varied(Case(torch.mul, (x, x))))


@pytest.mark.parametrize(
    "case",
    [
        Case(torch.exp, (torch.ones(2, dtype=torch.int64),)),
        Case(torch.exp, (torch.ones(2).to_sparse(),)),
        Case(torch.empty_like, (torch.ones(2),), uninitialised="empty"),
    ],
    ids=["integers", "sparse", "uninitialised"],
)
def test_cases_without_numbers_are_not_varied(case: Case) -> None:
    assert varied(case) == []


@pytest.mark.parametrize(
    ("operator", "cases"), [("exp", 3), ("var_mean", 6), ("nn.functional.batch_norm", 6), ("log_softmax", 6)]
)
def test_of_statistics_several_samples_are_varied(operator: str, cases: int) -> None:
    samples = Case(torch.exp, (torch.ones(2),), {"flag": True}), Case(torch.exp, (torch.ones(2),), {"flag": False})
    assert len(varied(*samples, operator=operator)) == cases


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [("exp", "float16"), ("exp", "int64"), ("nn.LSTM", "float32"), ("nn.TransformerEncoder", "float32")],
)
def test_other_dtypes_and_modules_of_many_layers_are_left_out(operator: str, dtype: str) -> None:
    assert list(VariedSource(CANCELLATION_FACTOR, Given(operator=operator, dtype=dtype)).groups()) == []
