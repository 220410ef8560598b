"""A broad spread of operators: what the simulated device returns is what the CPU returns, strides included."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES_PER_OPERATOR = 2
pytestmark = pytest.mark.filterwarnings("ignore")
# OpInfos without a result to compare, or that build what mps does not have.
NOT_COMPARED = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
    "sparse.mm": "needs CSR tensors, which are not simulated",
    "sparse.sampled_addmm": "needs CSR tensors, which are not simulated",
    "tensor_split": "takes a second tensor, which belongs on the CPU",
    "linalg.lstsq": "falls back; copies of the results have other strides than the CPU's own",
}
# What mps refuses wherever it appears, in arguments and results alike.
REFUSED = ("float64", "ComplexDouble")


def operators() -> list[OpInfo]:
    """Every OpInfo that runs in float32 on the CPU (jiterator is for CUDA, whatever its OpInfo says)."""
    return [
        op
        for op in op_db
        if op.name not in NOT_COMPARED
        and not op.name.startswith("jiterator")
        and op.supports_dtype(torch.float32, "cpu")
    ]


def to_mps(value: Any) -> Any:
    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to("mps").requires_grad_(leaf.requires_grad)
        return leaf

    return tree_map(move, value)


def own(value: Any) -> Any:
    """A copy for the CPU, for operators that change their arguments."""

    def copied(leaf: Any) -> Any:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(copied, value)


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def few_samples(op: OpInfo) -> Iterator[tuple[Any, Any]]:
    """Arguments and keyword arguments of the first samples that stay on one device."""
    taken = 0
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd):
        if "device" in sample.kwargs:
            continue
        yield (sample.input, *sample.args), sample.kwargs
        taken += 1
        if taken == SAMPLES_PER_OPERATOR:
            return


def gradients(outputs: Any, inputs: Any) -> list[torch.Tensor | None]:
    """The gradients of the dense outputs' sum with respect to every input that wants one."""
    differentiable = [t for t in tensors(outputs) if t.requires_grad and t.layout == torch.strided]
    wanted = [t for t in tensors(inputs) if t.requires_grad]
    if not differentiable or not wanted:
        return []
    ones = [torch.ones_like(t) for t in differentiable]
    return list(torch.autograd.grad(differentiable, wanted, ones, allow_unused=True))


@pytest.mark.parametrize("op", operators(), ids=lambda op: op.full_name)
def test_results_and_gradients_are_those_of_the_cpu(op: OpInfo, fallback_enabled: None) -> None:
    for arguments in few_samples(op):
        on_cpu = own(arguments)
        torch.manual_seed(0)
        expected = op(*on_cpu[0], **on_cpu[1])
        try:
            expected_gradients = gradients(expected, on_cpu) if op.supports_autograd else []
        except RuntimeError:
            expected_gradients = None  # linalg.eig: the CPU refuses it, too
        try:
            on_mps = to_mps(arguments)
            torch.manual_seed(0)
            got = op(*on_mps[0], **on_mps[1])
            got_gradients = gradients(got, on_mps) if expected_gradients else []
        except TypeError as error:
            if not any(word in str(error) for word in REFUSED):
                raise
            continue
        for mine, theirs in zip(tensors(got), tensors(expected), strict=True):
            torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-5, atol=1e-5, equal_nan=True)
            assert mine.layout != torch.strided or mine.stride() == theirs.stride()
        for mine, theirs in zip(got_gradients, expected_gradients or [], strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.fixture(scope="module", autouse=True)
def without_leaks() -> Iterator[None]:
    before = torch.mps.current_allocated_memory()
    yield
    gc.collect()
    assert torch.mps.current_allocated_memory() == before
