"""The gradient of the CTC loss with NaN and infinite forward variables and log probabilities equals the CPU's."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

aten = torch.ops.aten
STEPS = 5
LABELS = 4
TARGET = [1, 2, 1]  # one label comes twice, one never
SPECIAL = (math.nan, math.inf, -math.inf)

REGISTERED = ("_ctc_loss", "_ctc_loss_backward")


def gradients(log_probs: Tensor, alpha: Tensor, loss: Tensor, targets: Tensor, forgives: bool) -> tuple[Tensor, Tensor]:
    """Of the CPU, item by item, and of the kernel, all items at once: log_probs (steps, items, labels) in float32."""
    steps, items, _ = log_probs.shape
    lengths = [steps] * items, [targets.shape[1]] * items
    operands = torch.ones(items), log_probs, targets, loss, alpha
    results = [aten._ctc_loss_backward(*order(x, *lengths), 0, forgives) for x in (operands, on_mps(operands))]
    return results[0], results[1].cpu()


def order(operands: tuple[Tensor, ...], of_inputs: list[int], of_targets: list[int]) -> tuple[object, ...]:
    gradient, log_probs, targets, loss, alpha = operands
    return gradient, log_probs, targets, of_inputs, of_targets, loss, alpha


def on_mps(operands: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(x.to("mps") for x in operands)


def one_in_each_item(x: Tensor, special: float) -> Tensor:
    """(1, ...) repeated for each of its elements, which is special in one item."""
    items = x.expand(x.numel(), *x.shape[1:]).reshape(x.numel(), -1).clone()
    return items.fill_diagonal_(special).view(-1, *x.shape[1:])


def problem() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log probabilities, forward variables, the loss, and the target of one item."""
    generator = torch.Generator().manual_seed(3)
    log_probs = torch.randn(STEPS, 1, LABELS, generator=generator).log_softmax(-1)
    targets = torch.tensor([TARGET])
    loss, alpha = aten._ctc_loss(log_probs, targets, [STEPS], [len(TARGET)])
    return log_probs, alpha, loss, targets


@pytest.mark.parametrize("forgives", [False, True])
@pytest.mark.parametrize("special", SPECIAL)
def test_special_forward_variables_propagate_as_on_the_cpu(special: float, forgives: bool) -> None:
    log_probs, alpha, loss, targets = problem()
    alphas = one_in_each_item(alpha, special)
    items = len(alphas)
    many = log_probs.expand(-1, items, -1).contiguous()
    expected, actual = gradients(many, alphas, loss.expand(items), targets.expand(items, -1), forgives)
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert expected.isfinite().any()


@pytest.mark.parametrize("forgives", [False, True])
@pytest.mark.parametrize("special", SPECIAL)
def test_special_probabilities_propagate_as_on_the_cpu(special: float, forgives: bool) -> None:
    log_probs, alpha, loss, targets = problem()
    many = one_in_each_item(log_probs.movedim(1, 0), special).movedim(0, 1).contiguous()
    items = many.shape[1]
    alphas, losses = alpha.expand(items, -1, -1).contiguous(), loss.expand(items).clone()
    losses[0] = math.inf  # no alignment of this one is possible
    expected, actual = gradients(many, alphas, losses, targets.expand(items, -1), forgives)
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert expected.isfinite().any()


def test_target_longer_than_a_group() -> None:
    generator = torch.Generator().manual_seed(4)
    targets = torch.arange(140).remainder(11).add(1)[None]
    log_probs = torch.randn(150, 1, 13, generator=generator).log_softmax(-1)
    loss, alpha = aten._ctc_loss(log_probs, targets, [150], [140])
    log_probs[-1, 0, 3] = math.nan  # not the last label, so that no alignment has it at the last step
    expected, actual = gradients(log_probs, alpha, loss, targets, False)
    assert int(expected.isnan().sum()) == 1
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("items", [1, 128, 129, 300])
@pytest.mark.parametrize("joined", [False, True])
def test_lengths_of_few_items_go_with_the_launch_and_of_many_in_a_tensor(items: int, joined: bool) -> None:
    generator = torch.Generator().manual_seed(items)
    log_probs = torch.randn(STEPS, items, LABELS, generator=generator).log_softmax(-1)
    of_targets = [at % 3 for at in range(items - 1)] + [2]
    of_inputs = [STEPS - at % 2 for at in range(items)]
    targets = torch.randint(1, LABELS, (sum(of_targets),) if joined else (items, 2), generator=generator)
    every_second = torch.stack([targets, -targets], -1).to("mps")[..., 0]
    expected = torch.ctc_loss(log_probs, targets, of_inputs, of_targets, reduction=0)
    actual = torch.ctc_loss(log_probs.to("mps"), every_second, of_inputs, of_targets, reduction=0)
    torch.testing.assert_close(actual.cpu(), expected)
