"""Sparse matrices on mps: `sspaddmm`, and what torch itself refuses to make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from mpsmith.kernels.runtime.registration import counting, status

S = [[0, 1, 0], [2, 0, 3], [0, 0, 0]]
M = [[0, 2], [0, 0], [1, 1]]


@pytest.fixture(autouse=True)
def calls() -> Iterator[dict[str, int]]:
    with counting("sspaddmm") as counted:
        assert [kernel.state.value for kernel in status() if kernel.overload == "aten::sspaddmm.out"] == ["registered"]
        yield counted


def operands(device: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    sparse = [torch.tensor(rows, dtype=dtype, device=device).to_sparse() for rows in (S, M)]
    return sparse[0], sparse[1], torch.arange(6).to(device, dtype).reshape(2, 3)


def parts(x: Tensor) -> tuple[list[list[int]], list[complex], tuple[int, ...], bool]:
    return x._indices().tolist(), x._values().tolist(), tuple(x.shape), x.is_coalesced()


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64, torch.uint8])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 3), (2, 0)])
def test_products_are_those_of_the_cpu(dtype: torch.dtype, beta: int, alpha: int, calls: dict[str, int]) -> None:
    actual, expected = (torch.sspaddmm(*operands(x, dtype), beta=beta, alpha=alpha) for x in ("mps", "cpu"))
    assert parts(actual) == parts(expected)
    assert calls["aten::sspaddmm.out"] == 1


def twice(device: str) -> Tensor:
    """A matrix with a duplicate index."""
    return torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], (3, 2), device=device)


FORMS: dict[str, Callable[[str], Tensor]] = {
    "smm": lambda device: torch.smm(*operands(device)[1:]),
    "smm of integers": lambda device: torch.smm(*operands(device, torch.int16)[1:]),
    "a fraction of no integers": lambda device: torch.sspaddmm(
        torch.sparse_coo_tensor(size=(3, 3), dtype=torch.int64, device=device),
        *operands(device, torch.int64)[1:],
        beta=0.5,
    ),
    "without columns": lambda device: torch.smm(operands(device)[1], torch.ones(2, 0, device=device)),
    "a place twice": lambda device: torch.sspaddmm(operands(device)[0], twice(device), operands(device)[2]),
    "transposed": lambda device: torch.sspaddmm(*operands(device)[:2], torch.ones(3, 2, device=device).cumsum(0).mT),
    "out": lambda device: torch.sspaddmm(*operands(device), out=torch.sparse_coo_tensor(size=(1, 1), device=device)),
    "empty": lambda device: torch.sspaddmm(
        operands(device)[0], torch.sparse_coo_tensor(size=(3, 0), device=device), torch.ones(0, 3, device=device)
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    assert parts(FORMS[form]("mps")) == parts(FORMS[form]("cpu"))


REFUSED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "sizes": lambda s, m, d: torch.sspaddmm(s, m, d.T),
    "the sum's size": lambda s, m, d: torch.sspaddmm(m, m, d),
    "a dense matrix": lambda s, m, d: torch.sspaddmm(s, m.to_dense(), d),
    "another dtype": lambda s, m, d: torch.sspaddmm(s, m, d.int()),
    "a hybrid": lambda s, m, d: torch.sspaddmm(s, torch.ones(3, 2, 2, device=m.device).to_sparse(2), d),
    "half": lambda s, m, d: torch.sspaddmm(s.half(), m.half(), d.half()),
    "a fraction of integers": lambda s, m, d: torch.sspaddmm(s.int(), m.int(), d.int(), beta=1.5),
}


@pytest.mark.parametrize("call", REFUSED)
def test_mps_refuses_the_same_calls_as_the_cpu(call: str) -> None:
    kinds = []
    for device in ("cpu", "mps"):
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            REFUSED[call](*operands(device))
        kinds.append(type(error.value))
    assert kinds[0] is kinds[1]


def test_torch_makes_no_compressed_sparse_tensor_on_mps() -> None:
    """Its constructor knows no mps, so that no kernel could return one: this fails once torch learns it."""
    borders, columns = torch.tensor([0, 1, 2], device="mps"), torch.tensor([0, 1], device="mps")
    with pytest.raises(NotImplementedError, match="Could not run 'new_compressed_tensor'"):
        torch.sparse_csr_tensor(borders, columns, torch.ones(2, device="mps"), (2, 2))
