"""Square roots of Hermitian matrices through the operator of a later torch, declared as its release does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from mpsmith import kernels
from mpsmith.simulator import metal
from support.later_schemas import declared


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    metal.install()
    with declared("aten::linalg_matrix_sqrth"), kernels.use("linalg_matrix_sqrth", "_linalg_eigh") as active:
        assert "aten::linalg_matrix_sqrth" in active
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 8, 8), (0, 0)])
def test_the_root_of_the_lower_triangle_is_hermitian_and_its_square_is_the_matrix(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1))
    matrix = x @ x.mH + torch.eye(shape[-1])
    root = torch.ops.aten.linalg_matrix_sqrth((matrix.tril() + 5 * x.triu(1)).to("mps")).cpu()
    assert root.is_contiguous()
    torch.testing.assert_close(root @ root, matrix, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(root, root.mH, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(3), "must have at least 2 dimensions"),
        (torch.ones(2, 3), "must be batches of square matrices, but they are 2 by 3 matrices"),
        (torch.ones(2, 2).int(), "Expected a floating point or complex tensor as input. Got Int"),
        (torch.ones(2, 2).half(), "Low precision dtypes not supported. Got Half"),
    ],
)
def test_unsupported_input_is_refused(x: torch.Tensor, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.ops.aten.linalg_matrix_sqrth(x.to("mps"))
