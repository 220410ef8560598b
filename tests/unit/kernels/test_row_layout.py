"""Rows along any dimensions are contiguous, and `from_rows` is the inverse of `rows_of`."""

from __future__ import annotations

import pytest
import torch

from mpsmith.kernels.runtime.row_layout import from_rows, reduced_shape, rows_of

BLOCK = torch.arange(24.0).reshape(2, 3, 4)


class TestRowLayout:
    @pytest.mark.parametrize("tensor", [BLOCK, BLOCK.permute(2, 0, 1), BLOCK[:, :, ::2]])
    @pytest.mark.parametrize("dims", [0, 1, -1, [0, 2], [1], None, []])
    def test_rows_are_the_slices_of_a_reduction(self, tensor: torch.Tensor, dims: int | list[int] | None) -> None:
        rows = rows_of(tensor, dims)
        assert rows.is_contiguous()
        axes = [dims] if isinstance(dims, int) else dims or [0, 1, 2]
        for keepdim in (False, True):
            expected = tensor.sum(axes, keepdim=keepdim)
            assert torch.equal(rows.sum(1).reshape(reduced_shape(tensor, dims, keepdim)), expected)
        assert torch.equal(from_rows(rows, tensor.shape, dims), tensor)

    def test_scalar_tensor(self) -> None:
        number = torch.tensor(3.0)
        assert rows_of(number, -1).tolist() == [[3.0]]
        assert reduced_shape(number, 0) == []
        assert from_rows(rows_of(number, 0), number.shape, 0).item() == 3.0

    def test_empty_rows(self) -> None:
        assert rows_of(torch.empty(3, 0), 1).shape == (3, 0)
        assert rows_of(torch.empty(0, 3), 1).shape == (0, 3)

    def test_dimension_out_of_range(self) -> None:
        with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\], but got 3"):
            rows_of(BLOCK, 3)
