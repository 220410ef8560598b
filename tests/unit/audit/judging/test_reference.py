"""What there is to compare with: float64 runs, moved inputs, and results that are undefined on the CPU itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mpsmith.audit.judging.execution import execute, gradients
from mpsmith.audit.judging.reference import WideGradient, WideOutput, WideRuns, perturb
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.judging.uninitialised_memory import reads_uninitialised_memory
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.nested import leaves


def runs_of(case: Case, cotangents: list[torch.Tensor] | None = None) -> WideRuns:
    return WideRuns(case, cotangents or [], lambda: None)


def test_the_reference_is_the_operator_in_float64() -> None:
    x = torch.tensor([0.1, 2.5])
    wide = WideOutput(runs_of(Case(torch.sin, (x,))), 0).value()
    assert wide.dtype is torch.float64
    assert torch.equal(wide, torch.sin(x.double()))


def test_integers_promote_to_float64() -> None:
    assert WideOutput(runs_of(Case(torch.sqrt, (torch.tensor([2]),))), 0).value().dtype is torch.float64


def test_an_operator_without_float64_has_no_reference() -> None:
    def only_float32(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            raise RuntimeError("not implemented for 'Double'")
        return x

    reference = WideOutput(runs_of(Case(only_float32, (torch.ones(2),))), 0)
    assert reference.value() is None
    assert reference.sensitivity(8) is None
    assert torch.get_default_dtype() is torch.float32


def test_a_gradient_has_a_reference_too() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    case = Case(torch.exp, (x,), differentiable=True)
    reference = WideGradient(runs_of(case, [torch.ones(2)]), 0)
    assert torch.allclose(reference.value(), torch.exp(x.detach().double()))


def test_cancellation_is_sensitive_and_a_product_is_not() -> None:
    x = torch.tensor([1000.0, -999.0])
    cancelling = WideOutput(runs_of(Case(torch.sum, (x,))), 0)
    eps = torch.finfo(torch.float32).eps
    assert cancelling.sensitivity(8) > 0.5 * eps
    product = WideOutput(runs_of(Case(torch.mul, (x, 2.0))), 0)
    assert bool((product.sensitivity(8) <= 2 * eps * (2 * x).abs()).all())


def test_many_moves_need_no_more_memory_than_a_result() -> None:
    sizes: list[int] = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            sizes.extend(leaf.numel() for leaf in leaves(result) if isinstance(leaf, torch.Tensor))
            return result

    with Sizes():
        WideOutput(runs_of(Case(torch.sin, (torch.ones(100),))), 0).sensitivity(8)
    assert max(sizes) == 100


def test_moved_runs_hold_no_argument_that_they_do_not_change() -> None:
    moved = runs_of(Case(torch.dot, (torch.ones(1000), torch.ones(1000)))).perturbed(2)
    assert [[tensor.numel() for tensor in run.tensors] for run in moved] == [[0, 0], [0, 0]]


def test_moves_that_cancel_out_are_outvoted_by_others() -> None:
    """Of a product, both factors move: half of the time against each other."""
    x, y = torch.full((1000,), 3.0), torch.full((1000,), 5.0)
    sensitivity = WideOutput(runs_of(Case(torch.mul, (x, y))), 0).sensitivity(8)
    assert float((sensitivity > 15 * torch.finfo(torch.float32).eps).double().mean()) > 0.98


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_a_perturbation_is_a_unit_in_the_last_place(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, -3.0, 0.0]).to(dtype)
    moved = perturb((x, 3, torch.tensor([7])), torch.Generator().manual_seed(1))
    relative = ((moved[0] - x).abs() / x.abs().clamp(min=1e-30))[:2]
    assert torch.allclose(relative.double(), torch.full((2,), torch.finfo(dtype).eps, dtype=torch.float64))
    assert moved[0][2] == 0
    assert moved[1] == 3
    assert moved[2].item() == 7


def reads_fresh_memory(case: Case) -> bool:
    return reads_uninitialised_memory(case, execute(case, move(case.args, case.kwargs, "cpu")), lambda: None)


def test_a_result_out_of_fresh_memory_is_undefined() -> None:
    assert reads_fresh_memory(
        Case(lambda x: torch.empty_like(x).nan_to_num(0.0) * 0 + torch.empty(3), (torch.ones(3),))
    )


@pytest.mark.parametrize("call", [torch.sin, torch.cumsum, torch.sort])
def test_a_result_of_the_inputs_alone_is_defined(call) -> None:
    args = (torch.tensor([3.0, 1.0, float("nan")]), 0) if call is torch.cumsum else (torch.tensor([3.0, float("nan")]),)
    assert not reads_fresh_memory(Case(call, args))


def test_gradients_of_unused_inputs_are_none() -> None:
    used, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    execution = execute(Case(lambda a, b: a * 2, differentiable=True), ((used, unused), {}))
    assert gradients(execution, [torch.ones(2)])[1] is None


# ---- how the runs are made


def test_the_inputs_move_eight_times() -> None:
    runs = runs_of(Case(torch.neg, (torch.ones(2),)))
    assert len(runs.perturbed(8)) == 8
    moved = torch.stack([run.outputs[0] for run in runs.perturbed(8)])
    assert len({tuple(row.tolist()) for row in moved}) > 2, "each time in other directions"


def test_every_run_starts_from_the_same_seed_in_float64_and_leaves_the_default_dtype() -> None:
    seeds: list[torch.dtype] = []
    dtypes: list[torch.dtype] = []
    case = Case(lambda x: dtypes.append(torch.tensor(1.0).dtype) or x, (torch.ones(2),))
    runs = WideRuns(case, [], lambda: seeds.append(torch.get_default_dtype()))
    assert runs.exact is not None
    assert len(runs.perturbed(8)) == len(seeds) - 1 == 8
    assert set(dtypes) == {torch.float64}
    assert torch.get_default_dtype() is torch.float32


def test_the_exact_run_has_the_cotangents_as_they_are_and_moved_runs_have_moved_ones() -> None:
    bias = torch.zeros(1, requires_grad=True)
    runs = runs_of(Case(lambda b: b.expand(3), (bias,), differentiable=True), [torch.full((3,), 0.1)])
    assert runs.exact is not None
    (exact,) = runs.gradients(runs.exact)
    assert exact is not None
    assert exact.item() == 3 * torch.tensor(0.1).double().item()
    (moved,) = runs.gradients(runs.perturbed(8)[0])
    assert moved is not None
    assert moved.item() != exact.item()
    assert moved.item() == pytest.approx(exact.item(), rel=1e-6)


def test_without_a_backward_in_float64_a_gradient_has_no_reference() -> None:
    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("not in float64")

    case = Case(Refusing.apply, (torch.ones(2, requires_grad=True),), differentiable=True)
    gradient = WideGradient(runs_of(case, [torch.ones(2)]), 0)
    assert gradient.value() is None
    assert gradient.sensitivity(8) is None


def test_a_result_that_the_wide_run_does_not_have_has_no_reference() -> None:
    case = Case(lambda x: (x, 3) if x.dtype is torch.float64 else (x, x, x), (torch.ones(2),))
    runs = runs_of(case)
    assert WideOutput(runs, 0).value() is not None
    assert WideOutput(runs, 1).value() is None, "a plain number is not a tensor"
    assert WideOutput(runs, 2).value() is None
    assert (
        WideGradient(runs_of(Case(torch.neg, (torch.ones(2, requires_grad=True),), differentiable=True)), 0).value()
        is None
    )


def test_moves_of_another_shape_are_left_out() -> None:
    """How many numbers are above one changes when the inputs move."""
    sensitivity = WideOutput(runs_of(Case(lambda x: x[x > 1], (torch.ones(4),))), 0).sensitivity(8)
    assert sensitivity is None or sensitivity.shape == (0,)
    grows = Case(lambda x: x[: 1 + int(x[0] > 1)] * 2, (torch.ones(4),))
    grown = WideOutput(runs_of(grows), 0).sensitivity(8)
    assert grown is not None
    assert grown.shape == (1,)


def test_sparse_results_have_a_dense_sensitivity() -> None:
    sensitivity = WideOutput(runs_of(Case(lambda x: x.to_sparse(), (torch.ones(2),))), 0).sensitivity(8)
    assert sensitivity is not None
    assert sensitivity.layout is torch.strided
    assert sensitivity.tolist() == [torch.finfo(torch.float32).eps] * 2


def test_a_perturbation_goes_up_or_down_by_the_narrower_dtypes_unit_and_stays_a_leaf() -> None:
    x = torch.ones(1000, requires_grad=True)
    moved = perturb(x, torch.Generator().manual_seed(1), torch.float16)
    eps = torch.finfo(torch.float16).eps
    assert set(moved.tolist()) == {1 - eps, 1 + eps}
    assert moved.requires_grad
    sparse = perturb(torch.eye(2).to_sparse(), torch.Generator().manual_seed(1))
    assert sparse.layout is torch.sparse_coo
    single = torch.finfo(torch.float32).eps
    assert set(sparse._values().tolist()) <= {1 - single, 1 + single}


def test_numbers_are_moved_where_there_is_no_tensor_to_move() -> None:
    directions = torch.Generator().manual_seed(1)
    moved = perturb(((1.0, 3, True), {"step": -2.0}), directions)
    eps = torch.finfo(torch.float32).eps
    assert moved[0][0] in (1 - eps, 1 + eps)
    assert moved[0][1:] == (3, True)
    assert moved[1]["step"] in (-2 - 2 * eps, -2 + 2 * eps)
    assert perturb((torch.ones(2), 1.0), directions)[1] == 1.0


def test_more_moves_are_other_moves() -> None:
    """Two terms that cancel hide it in one of 2^moves elements."""
    x, y = torch.full((2000,), 3.0), torch.full((2000,), -2.9)
    reference = WideOutput(runs_of(Case(torch.add, (x, y))), 0)
    eps = torch.finfo(torch.float32).eps
    assert bool((reference.sensitivity(8) < eps).any())
    assert bool((reference.sensitivity(24) > 5 * eps).all())


def test_inputs_that_are_not_normal_may_be_zeros() -> None:
    tiny = 2.0**-130
    flushed = WideOutput(runs_of(Case(torch.log, (torch.tensor([tiny, 1.0, -tiny]),))), 0).flushed()
    assert flushed.tolist() == [-float("inf"), 0.0, -float("inf")]
    assert WideOutput(runs_of(Case(torch.log, (torch.tensor([2.0**-126, 0.0]),))), 0).flushed() is None
