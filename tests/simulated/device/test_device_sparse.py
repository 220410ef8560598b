"""Sparse COO tensors on the simulated device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from mpsmith.simulator.device import loading as device

DENSE = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, -4.0]])


def on(target: str) -> torch.Tensor:
    return DENSE.to(target).to_sparse()


OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense again": lambda s: s.to_dense(),
    "scaled": lambda s: s * 2,
    "sum of two": lambda s: s + s,
    "product with dense": lambda s: s @ torch.arange(6.0, device=s.device).view(3, 2),
    "product of sparse": lambda s: torch.sparse.mm(s, s.t()),
    "transpose": lambda s: s.t(),
    "negative": lambda s: -s,
    "root of magnitudes": lambda s: s.abs().sqrt(),
    "sum": lambda s: torch.sparse.sum(s, dim=0),
    "total": lambda s: s.sum(),
    "rows": lambda s: s.index_select(0, torch.tensor([1], device=s.device)),
    "unsqueezed": lambda s: s.unsqueeze(0),
    "uncoalesced": lambda s: torch.cat([s, s]).coalesce(),
    "softmax": lambda s: torch.sparse.softmax(s, dim=1),
    "half": lambda s: s.half().float(),
    "clone": lambda s: s.clone(),
    "zero": lambda s: s.clone().zero_(),
    "mask": lambda s: torch.ones(2, 3, device=s.device).sparse_mask(s),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_results_are_those_of_the_cpu(
    operation: Callable[[torch.Tensor], torch.Tensor], fallback_enabled: None
) -> None:
    got, expected = operation(on("mps")), operation(on("cpu"))
    assert got.device.type == "mps"
    assert got.layout == expected.layout
    if expected.layout == torch.sparse_coo:
        assert got.is_coalesced() == expected.is_coalesced()
        assert got._nnz() == expected._nnz()
        got, expected = got.to_dense(), expected.to_dense()
    torch.testing.assert_close(got.cpu(), expected)


def test_the_key_is_the_real_one_and_calls_count() -> None:
    s = on("mps")
    device.reset_counters()
    assert torch._C._dispatch_keys(s).has(torch._C.DispatchKey.SparseMPS)
    s._values()
    assert device.counters()["aten::_values"].native == 1


def test_indices_and_values_share_memory() -> None:
    s = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], device="mps")
    s._values().mul_(10)
    assert s.to_dense().tolist() == [10, 20]
    assert s._indices().device.type == s._values().device.type == "mps"


def test_in_place_changes() -> None:
    s = on("mps").clone()
    s.mul_(3)
    s.add_(on("mps"))
    torch.testing.assert_close(s.to_dense().cpu(), DENSE * 4)
    t = torch.sparse_coo_tensor(size=(2, 3), device="mps")
    t.copy_(on("mps"))
    torch.testing.assert_close(t.to_dense().cpu(), DENSE)
    t.sparse_resize_and_clear_((4, 4), 1, 1)
    assert (t.shape, t._nnz(), t.sparse_dim(), t.dense_dim()) == ((4, 4), 0, 1, 1)


def test_it_goes_to_the_cpu_and_back() -> None:
    there_and_back = on("cpu").to("mps").to("cpu")
    torch.testing.assert_close(there_and_back.to_dense(), DENSE)


def test_float64_values_are_refused() -> None:
    with pytest.raises(TypeError, match="doesn't support float64"):
        torch.sparse_coo_tensor([[0]], [1.0], dtype=torch.float64, device="mps")


def test_an_embedding_with_sparse_gradients_learns() -> None:
    weights = {}
    for target in ("cpu", "mps"):
        torch.manual_seed(0)
        layer = nn.Embedding(5, 3, sparse=True).to(target)
        optimizer = torch.optim.SparseAdam(list(layer.parameters()), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            layer(torch.tensor([1, 3, 1], device=target)).square().sum().backward()
            assert layer.weight.grad is not None
            assert layer.weight.grad.is_sparse
            optimizer.step()
        weights[target] = layer.weight.detach().cpu()
    torch.testing.assert_close(weights["mps"], weights["cpu"])


def test_gradients_flow_through_a_sparse_product() -> None:
    grads = {}
    for target in ("cpu", "mps"):
        dense = torch.ones(3, 2, device=target, requires_grad=True)
        torch.sparse.mm(on(target), dense).square().sum().backward()
        assert dense.grad is not None
        grads[target] = dense.grad.cpu()
    torch.testing.assert_close(grads["mps"], grads["cpu"])
