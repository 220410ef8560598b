"""Dtypes that the simulated device refuses on request."""

from collections.abc import Iterator

import pytest
import torch

from mpsmith.audit.coverage.dtype_refusals import refuse_as
from mpsmith.errors import MpsmithError
from mpsmith.simulator.device import refusals


@pytest.fixture(autouse=True)
def nothing_refused_afterwards() -> Iterator[None]:
    yield
    refusals.clear()


def test_a_native_operator_refuses_with_the_error_of_a_mac() -> None:
    refusals.refuse({"abs.out": ["int8", "complex64"]})
    numbers = torch.tensor([-1, 2], device="mps", dtype=torch.int8)
    with pytest.raises(NotImplementedError, match="\"abs\" not implemented for 'Char'"):
        torch.abs(numbers)
    with pytest.raises(TypeError, match="Trying to convert ComplexFloat to the MPS backend"):
        torch.abs(numbers.to(torch.complex64))
    assert torch.abs(numbers.to(torch.int16)).tolist() == [1, 2]


def test_only_the_first_tensor_counts() -> None:
    refusals.refuse({"index_select": ["int64"]})
    index = torch.tensor([1], device="mps")
    assert torch.index_select(torch.ones(3, device="mps"), 0, index).tolist() == [1.0]
    with pytest.raises(NotImplementedError, match="index_select"):
        torch.index_select(torch.arange(3, device="mps"), 0, index)


def test_lists_of_tensors_are_looked_into() -> None:
    refusals.refuse({"cat": ["int8"]})
    with pytest.raises(NotImplementedError, match="cat"):
        torch.cat([torch.ones(1, device="mps", dtype=torch.int8)])


def test_nothing_is_refused_any_more_after_clear() -> None:
    refusals.refuse({"abs.out": ["float32"]})
    refusals.clear()
    assert torch.abs(torch.tensor([-1.0], device="mps")).tolist() == [1.0]


def test_unknown_dtypes_are_an_error() -> None:
    with pytest.raises(MpsmithError, match="torch has no dtype 'float7', which aten::abs was to refuse"):
        refusals.refuse({"abs": ["float7"]})


def test_a_release_refuses_what_its_own_tests_expect_to_fail() -> None:
    refused = refuse_as("2.13.0")
    assert "int8" in refused["avg_pool2d.out"]
    with pytest.raises(NotImplementedError, match="avg_pool2d"):
        torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4, device="mps", dtype=torch.int8), 2)
    assert torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4, device="mps"), 2).sum().item() == 4.0
    with pytest.raises(MpsmithError, match="known releases"):
        refuse_as("0.1")
