"""Calls that the simulated device refuses on request, with the errors of a Mac."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional

from mpsmith.audit.releases.coverage.refusals import refuse_as, refuse_as_profile
from mpsmith.errors import MpsmithError
from mpsmith.simulator.device import refusals
from mpsmith.simulator.device.refusals import Refusal


@pytest.fixture(autouse=True)
def nothing_refused_afterwards() -> Iterator[None]:
    yield
    refusals.clear()


def ones(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(sizes, device="mps", dtype=dtype)


@pytest.mark.parametrize("error", [RuntimeError, TypeError, NotImplementedError])
def test_a_native_operator_refuses_dtypes_with_the_error_that_is_asked_for(error: type[Exception]) -> None:
    refusals.refuse([Refusal("abs.out", "self", "not on mps", ("int8", "complex64"), error=error.__name__)])
    numbers = torch.tensor([-1, 2], device="mps", dtype=torch.int8)
    for refused in (numbers, numbers.to(torch.complex64)):
        with pytest.raises(error, match=r"^not on mps$") as caught:
            torch.abs(refused)
        assert type(caught.value) is error
    assert torch.abs(numbers.to(torch.int16)).tolist() == [1, 2]


def test_only_the_named_tensor_counts() -> None:
    refusals.refuse([Refusal("index_select", "self", "no integers", ("int64",))])
    index = torch.tensor([1], device="mps")
    assert torch.index_select(ones(3), 0, index).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="no integers"):
        torch.index_select(torch.arange(3, device="mps"), 0, index)


def test_lists_of_tensors_are_looked_into() -> None:
    refusals.refuse([Refusal("cat", "tensors", "no bytes", ("int8",))])
    with pytest.raises(RuntimeError, match="no bytes"):
        torch.cat([ones(1, dtype=torch.int8)])


def test_dimensions_and_texts_of_arguments_are_conditions() -> None:
    refusals.refuse(
        [
            Refusal("abs.out", "self", "no matrices", dimensions=2),
            Refusal("scatter_reduce.two", "self", "no products", condition="reduce=prod"),
        ]
    )
    assert torch.abs(ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="no matrices"):
        torch.abs(ones(2, 2))
    index = torch.zeros(2, dtype=torch.int64, device="mps")
    assert ones(2).scatter_reduce(0, index, ones(2), "sum").tolist() == [3, 1]
    with pytest.raises(RuntimeError, match="no products"):
        ones(2).scatter_reduce(0, index, ones(2), "prod")


def test_nothing_is_refused_any_more_after_clear() -> None:
    refusals.refuse([Refusal("abs.out", "self", "no")])
    refusals.clear()
    assert torch.abs(torch.tensor([-1.0], device="mps")).tolist() == [1.0]


def test_unknown_dtypes_and_conditions_are_errors_and_unknown_overloads_are_left_out() -> None:
    with pytest.raises(MpsmithError, match="torch has no dtype 'float7', which aten::abs was to refuse"):
        refusals.refuse([Refusal("abs", "self", "no", ("float7",))])
    with pytest.raises(ValueError, match="no condition for refusals has the name full moon"):
        refusals.refuse([Refusal("abs", "self", "no", condition="full moon")])
    refusals.refuse([Refusal("of_the_future", "self", "no")])


def test_torch_2_13_refuses_dtypes_as_on_a_mac() -> None:
    refuse_as("2.13.0")
    integers = ones(2, 2, dtype=torch.int32)
    complex_numbers = ones(2, 2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="MPS device does not support linear for non-float inputs"):
        functional.linear(integers, integers)
    with pytest.raises(RuntimeError, match="Convolution is supported only for Floating types"):
        functional.conv2d(ones(1, 1, 4, 4, dtype=torch.int64), ones(1, 1, 2, 2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Convolution is supported only for Floating types"):
        functional.conv_transpose1d(ones(1, 1, 4, dtype=torch.int64), ones(1, 1, 2, dtype=torch.int64))
    for call in (torch.linalg.inv, torch.linalg.det, torch.linalg.lu_factor):
        with pytest.raises(RuntimeError, match="complex types"):
            call(complex_numbers)
    with pytest.raises(RuntimeError, match="ConvTranspose 3D with BF16 or FP16 types is not supported on MPS"):
        functional.conv_transpose3d(ones(1, 1, 2, 2, 2, dtype=torch.float16), ones(1, 1, 1, 1, 1, dtype=torch.float16))
    assert functional.conv_transpose2d(ones(1, 1, 2, 2).half(), ones(1, 1, 1, 1).half()).sum().item() == 4.0
    assert functional.linear(ones(2, 2), ones(2, 2)).tolist() == [[2, 2], [2, 2]]
    # Integers in the tensor that is added to are accepted.
    assert torch.addr(integers, ones(2), ones(2)).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("sizes", "wanted", "text"),
    [
        ((4, 6), (3, 3), "input sizes must be divisible by output sizes. Non-divisible input sizes are not"),
        ((2, 3), (4, 4), "output sizes must be divisible by input sizes. Non-divisible input sizes are not implem"),
        ((2, 4), (4, 2), "Input height and width must both be greater than, or equal to, or lesser than output he"),
        ((4, 6), (2, 3), None),
        ((2, 3), (4, 9), None),
        ((0, 3), (0, 3), None),
    ],
)
def test_adaptive_average_pools_whose_sizes_do_not_divide(
    sizes: tuple[int, int], wanted: tuple[int, int], text: str | None
) -> None:
    refuse_as("2.13.0")
    if 0 in sizes:
        with pytest.raises(RuntimeError, match="non-zero size"):
            functional.adaptive_avg_pool2d(ones(1, 1, *sizes), wanted)
    elif text is None:
        assert functional.adaptive_avg_pool2d(ones(1, 1, *sizes), wanted).sum().item() == wanted[0] * wanted[1]
    else:
        with pytest.raises(NotImplementedError, match=f"^Adaptive pool MPS: {text}"):
            functional.adaptive_avg_pool2d(ones(1, 1, *sizes), wanted)
        with pytest.raises(NotImplementedError, match=r"^Adaptive pool MPS: "):
            torch.ops.aten._adaptive_avg_pool2d_backward(ones(1, 1, *wanted), ones(1, 1, *sizes))


def test_an_adaptive_maximum_needs_no_sizes_that_divide() -> None:
    refuse_as("2.13.0")
    assert functional.adaptive_max_pool2d(ones(1, 1, 4, 6), (3, 3)).sum().item() == 9.0
    with pytest.raises(NotImplementedError, match=r"^Adaptive pool MPS: Input height and width must both be greater"):
        functional.adaptive_max_pool2d(ones(1, 1, 2, 4), (4, 2))


def test_an_unknown_release_refuses_as_its_ancestor() -> None:
    assert refuse_as("none") == []
    assert refuse_as_profile("made by hand") == []
    assert refuse_as_profile("2.13.7.dev1") == refuse_as("2.13.0")
    with pytest.raises(MpsmithError, match="known releases"):
        refuse_as("0.1")
