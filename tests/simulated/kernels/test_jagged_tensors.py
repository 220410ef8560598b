"""Nested tensors of jagged layout, and encoders with masks, whose operators have no kernel on mps in any release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from mpsmith.kernels.runtime.registration import counting
from mpsmith.simulator import metal

aten = torch.ops.aten
NAMES = ("_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward", "_nested_tensor_from_mask_left_aligned")


@pytest.fixture(autouse=True)
def calls() -> Iterator[dict[str, int]]:
    metal.install()
    with counting(*NAMES) as counted:
        yield counted


def offsets(*borders: int) -> list[Tensor]:
    return [torch.tensor(borders, device="mps")]


@pytest.mark.filterwarnings("ignore")
def test_encoder_with_a_mask(calls: dict[str, int]) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(2, 3, 8), torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        actual = encoder.to("mps")(x.to("mps"), src_key_padding_mask=padding.to("mps")).cpu()
    torch.testing.assert_close(actual[~padding], expected[~padding])
    assert calls["aten::_nested_tensor_from_mask_left_aligned"] == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([[1, 1, 0]], True), ([[0, 0, 0]], True), ([[1, 0, 1]], False), ([[1, 1, 1], [0, 1, 1]], False)],
)
def test_masks_with_gaps(rows: list[list[int]], expected: bool) -> None:
    mask = torch.tensor(rows, dtype=torch.bool, device="mps")
    assert torch._nested_tensor_from_mask_left_aligned(torch.ones(*mask.shape, 2, device="mps"), mask) is expected


def test_jagged_layout_is_padded_with_gradients(calls: dict[str, int]) -> None:
    rows = torch.arange(10.0).reshape(5, 2)
    results = []
    for device in ("cpu", "mps"):
        values = rows.clone().to(device).requires_grad_()
        nested = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5], device=device))
        padded = nested.to_padded_tensor(7.0)
        padded.square().sum().backward()
        assert values.grad is not None
        results.append((padded.detach().cpu(), values.grad.cpu()))
    (expected, expected_gradient), (actual, gradient) = results
    assert torch.equal(actual, expected)
    assert torch.equal(gradient, expected_gradient)
    assert calls["aten::_jagged_to_padded_dense_forward"] == calls["aten::_padded_dense_to_jagged_forward"] == 1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.float16])
@pytest.mark.parametrize("padding", [float("inf"), float("-inf"), float("nan"), 1e30, 300.0, -5.7])
def test_padding_is_cast_as_the_cpu_casts_it(dtype: torch.dtype, padding: float) -> None:
    rows = torch.ones(3, 2).to(dtype)
    actual, expected = (
        aten._jagged_to_padded_dense_forward(rows.to(device), [torch.tensor([0, 1, 3]).to(device)], [3], padding)
        for device in ("mps", "cpu")
    )
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("last", [float("nan"), float("inf"), 1e19, 1 + 1j])
def test_offsets_without_a_whole_number_are_refused(last: complex) -> None:
    for device in ("cpu", "mps"):
        borders = torch.tensor([0, last], device=device)
        with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
            aten._jagged_to_padded_dense_forward(torch.ones(4, device=device), [borders], [2], 0.0)


@pytest.mark.parametrize("borders", [[0.0, 1.7, 3.2], [True, True], [0j, 1 + 0j]])
def test_offsets_of_other_dtypes(borders: list[complex]) -> None:
    actual, expected = (
        aten._jagged_to_padded_dense_forward(
            torch.arange(4.0, device=device), [torch.tensor(borders, device=device)], [2], 9.0
        )
        for device in ("mps", "cpu")
    )
    assert torch.equal(actual.cpu(), expected)


REPORTED = {
    "offsets reach beyond the values": lambda: aten._jagged_to_padded_dense_forward(
        torch.ones(5, 2, device="mps"), offsets(0, 2, 6), [4], 3.0
    ),
    "offsets reach beyond": lambda: aten._jagged_to_padded_dense_forward(
        torch.ones(5, 2, device="mps"), offsets(-1, 2, 5), [4], 3.0
    ),
    "longer than the padded input": lambda: aten._padded_dense_to_jagged_forward(
        torch.ones(2, 3, 2, device="mps"), offsets(0, 4, 5), 5
    ),
    "should match total_L": lambda: aten._padded_dense_to_jagged_forward(
        torch.ones(2, 3, 2, device="mps"), offsets(0, 2, 4), 5
    ),
}


@pytest.mark.parametrize("message", REPORTED)
def test_offsets_that_do_not_fit_are_reported(message: str) -> None:
    with metal.checking("checked"), pytest.raises(torch.AcceleratorError, match=message):
        REPORTED[message]().cpu()
