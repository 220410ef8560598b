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
# torch's own python kernel for mps (torch._refs.linalg) returns at once if its out has no elements.
OUT_NOT_RESIZED = ("lu_solve", "linalg.lu_solve")
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


def few_samples(op: OpInfo, count: int) -> Iterator[tuple[Any, Any]]:
    """Arguments and keyword arguments of the first `count` samples that stay on one device."""
    taken = 0
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd):
        if "device" in sample.kwargs:
            continue
        yield (sample.input, *sample.args), sample.kwargs
        taken += 1
        if taken == count:
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
    for arguments in few_samples(op, 2):
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


@pytest.mark.parametrize("op", [op for op in operators() if op.inplace_variant], ids=lambda op: op.full_name)
def test_in_place_variants_write_into_their_argument(op: OpInfo, fallback_enabled: None) -> None:
    for arguments, options in few_samples(op, 1):
        with torch.no_grad():
            on_cpu, on_mps = own(arguments), to_mps(arguments)
            bytes_before = on_mps[0].untyped_storage().data_ptr()
            torch.manual_seed(0)
            try:
                op.inplace_variant(*on_cpu, **own(options))
            except (RuntimeError, TypeError):
                continue  # the sample broadcasts, or its result has another dtype
            torch.manual_seed(0)
            assert op.inplace_variant(*on_mps, **to_mps(options)) is on_mps[0]
        torch.testing.assert_close(on_mps[0].cpu(), on_cpu[0], rtol=1e-5, atol=1e-5, equal_nan=True)
        assert on_mps[0].stride() == on_cpu[0].stride()
        if on_mps[0].shape == arguments[0].shape:
            assert on_mps[0].untyped_storage().data_ptr() == bytes_before


@pytest.mark.parametrize(
    "op", [op for op in operators() if op.supports_out and op.name not in OUT_NOT_RESIZED], ids=lambda op: op.full_name
)
def test_out_arguments_are_resized_and_filled(op: OpInfo, fallback_enabled: None) -> None:
    for arguments, options in few_samples(op, 1):
        with torch.no_grad():
            result = op(*own(arguments), **own(options))
            if not isinstance(result, torch.Tensor) or result.dtype in (torch.float64, torch.complex128):
                continue
            outs = {target: torch.empty(0, dtype=result.dtype, device=target) for target in ("cpu", "mps")}
            torch.manual_seed(0)
            try:
                op(*own(arguments), **own(options), out=outs["cpu"])
            except RuntimeError:
                continue  # normal with a tensor of means: the CPU does not resize its out
            torch.manual_seed(0)
            assert op(*to_mps(arguments), **to_mps(options), out=outs["mps"]) is outs["mps"]
        torch.testing.assert_close(outs["mps"].cpu(), outs["cpu"], rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.fixture(scope="module", autouse=True)
def without_leaks() -> Iterator[None]:
    gc.collect()  # what tests of other modules left
    before = torch.mps.current_allocated_memory()
    yield
    gc.collect()
    assert torch.mps.current_allocated_memory() <= before
