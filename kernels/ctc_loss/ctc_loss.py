"""The loss of connectionist temporal classification, and its backward."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from ..runtime import rows
from ..runtime.operands import require_device
from ..runtime.rows import is_too_long, launch_rows, row_group
from ..runtime.shader import Shader
from ..runtime.signatures import keep, planned, plans

_shader = Shader(__file__)
# Items whose lengths fit into the 4 KB that a launch takes by value.
_MOST_IN_A_LAUNCH = 128
_WHILE = "(while checking arguments for ctc_loss_allocate_outputs)"


class _Plan(NamedTuple):
    """What follows from tensors' signatures and the length of the longest target."""

    sizes: tuple[int, int, int, int]  # steps, items, labels, and states of the longest target
    serial: int  # steps of one thread, one after the other
    group: int  # the threads that share these states
    grids: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int]]  # of the backward: threads, a group, threads
    lengths: tuple[int, int]  # the elements of `targets` along the first dimension, and from one to the next
    starts: list[int] | None  # of targets, if all are padded to one length; None if one follows the other
    geometry: list[int]  # `struct problem` of the Metal source


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_ctc_loss`: the loss of each item, and the forward variables, -infinity for states that no alignment reaches.

    A label out of range gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    targets = targets.long() if targets.dtype == torch.int32 else targets
    plan = planned(_plan, (log_probs, targets), max(target_lengths, default=0), blank, zero_infinity)
    operands = _operands(plan, log_probs, targets, input_lengths, target_lengths)
    steps, items, _, states = plan.sizes
    if plan.serial > rows.MOST_STEPS and is_too_long("ctc_loss", plan.serial, "{} steps", steps):
        lengths = list(input_lengths), list(target_lengths)
        on_cpu = torch.ops.aten._ctc_loss(log_probs.cpu(), targets.cpu(), *lengths, blank, zero_infinity)
        return on_cpu[0].to(log_probs.device), on_cpu[1].to(log_probs.device)
    loss = torch.empty(items, dtype=log_probs.dtype, device=log_probs.device)
    alpha = torch.full((items, steps, states), -math.inf, dtype=log_probs.dtype, device=log_probs.device)
    launch_rows(_shader.kernel("ctc_alpha", loss.device), items, plan.group, loss, alpha, *operands, reports=True)
    return loss, alpha


def ctc_loss_tensor(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_ctc_loss.Tensor`: reads the lengths back, as the CPU does, because shapes depend on them."""
    return ctc_loss(log_probs, targets, input_lengths.tolist(), target_lengths.tolist(), blank, zero_infinity)


def ctc_loss_backward(
    grad: torch.Tensor,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    neg_log_likelihood: torch.Tensor,
    log_alpha: torch.Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """`_ctc_loss_backward`: the gradient of the log probabilities, zero after the last step of each item."""
    if targets.dtype == torch.int32:
        targets = targets.long()
    numbers = max(target_lengths) if target_lengths else 0, blank, zero_infinity
    # Without strides where a contiguous copy is read.
    signature = (
        (numbers, log_probs.dtype, log_probs.shape, log_probs.stride(), log_probs.get_device()),
        (targets.dtype, targets.shape, targets.stride(), targets.get_device()),
        (grad.dtype, grad.shape, grad.get_device(), log_alpha.dtype, log_alpha.shape, log_alpha.get_device()),
        (neg_log_likelihood.dtype, neg_log_likelihood.shape, neg_log_likelihood.get_device(), _plan_of_backward),
    )
    plan = plans.get(signature)
    if plan is None:
        given = (log_probs, targets, grad, neg_log_likelihood, log_alpha)
        plan = keep(signature, _plan_of_backward(*given, *numbers))
    operands = _operands(plan, log_probs, targets, input_lengths, target_lengths)
    if plan.serial > rows.MOST_STEPS and is_too_long("ctc_loss", plan.serial, "{} steps", plan.sizes[0]):
        on_cpu = [x.cpu() for x in (grad, log_probs, targets, neg_log_likelihood, log_alpha)]
        lengths = list(input_lengths), list(target_lengths)
        result: torch.Tensor = torch.ops.aten._ctc_loss_backward(
            *on_cpu[:3], *lengths, *on_cpu[3:], blank, zero_infinity
        )
        return result.to(log_probs.device)
    device = log_probs.device
    log_alpha = log_alpha.contiguous()
    gradient = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
    shared = (gradient, grad.contiguous(), neg_log_likelihood.contiguous(), torch.empty_like(log_alpha), *operands)
    of_items, group_size, of_kinds = plan.grids
    _shader.kernel("ctc_beta", device)(*shared, threads=of_items, group_size=group_size)
    _shader.kernel("ctc_collect", device)(*shared, log_alpha, threads=of_kinds)
    return gradient


def _plan_of_backward(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    grad: torch.Tensor,
    neg_log_likelihood: torch.Tensor,
    log_alpha: torch.Tensor,
    *numbers: Any,
) -> _Plan:
    """The same with the checks of the other operands."""
    plan = _plan(log_probs, targets, *numbers)
    steps, items, _, states = plan.sizes
    others = {"grad": grad, "neg_log_likelihood": neg_log_likelihood, "log_alpha": log_alpha}
    require_device(log_probs, others, "_ctc_loss_backward")
    for (name, x), shape in zip(others.items(), ((items,), (items,), (items, steps, states)), strict=True):
        if x.dtype != torch.float32 or x.shape != shape:
            raise RuntimeError(
                f"_ctc_loss_backward: expected {name} of torch.float32 and sizes {list(shape)}, but got {x.dtype} and "
                f"{list(x.shape)}"
            )
    return plan


def ctc_loss_backward_tensor(
    grad: torch.Tensor,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    neg_log_likelihood: torch.Tensor,
    log_alpha: torch.Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """`_ctc_loss_backward.Tensor`."""
    steps, sizes = input_lengths.tolist(), target_lengths.tolist()
    given = (grad, log_probs, targets, steps, sizes, neg_log_likelihood, log_alpha, blank, zero_infinity)
    return ctc_loss_backward(*given)


def _plan(log_probs: torch.Tensor, targets: torch.Tensor, longest: int, blank: int, zero_infinity: bool) -> _Plan:
    """The plan, after the checks of the CPU that need no more. Raises what the CPU raises."""
    if log_probs.numel() == 0:
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs.dtype != torch.float32:
        raise NotImplementedError(f"ctc_loss is not implemented for {log_probs.dtype} on mps")
    require_device(log_probs, {"targets": targets}, "_ctc_loss")
    if targets.dtype != torch.int64:
        raise RuntimeError(
            f"Expected tensor for argument #2 'targets' to have scalar type Int; but got {targets.dtype} instead "
            f"{_WHILE}"
        )
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.dim()}-dimensional tensor for argument #1 'log_probs' "
            f"{_WHILE}"
        )
    if targets.dim() not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument #2 'targets' {_WHILE}"
        )
    steps, items, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    strides, starts = targets.stride(), None
    if targets.dim() == 2:
        _require_size(targets, 0, items)
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
                f"argument #2 'targets' {_WHILE}"
            )
        longest, starts = targets.shape[1], [item * strides[0] for item in range(items)]
    states = 2 * longest + 1
    geometry = [steps, labels, states, *log_probs.stride(), blank, strides[-1], items, int(zero_infinity)]
    group = row_group(states)
    serial, lengths = steps * -(-states // group), (targets.shape[0], strides[0])
    # A group an item, and those for all elements of the gradient; the blank and the labels of the longest target.
    grids = (group, items - -log_probs.numel() // group), (group, 1), ((states + 1) // 2, items, steps)
    return _Plan((steps, items, labels, states), serial, group, grids, lengths, starts, geometry)


def _operands(
    plan: _Plan,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | list[int], list[int]]:
    """What all kernels read, after the checks of lengths. Raises what the CPU raises.

    The lengths are int64 in three rows: steps, lengths of targets, where each target starts. A list goes with the
    launch; a tensor is copied to the device first, and the host waits for that.
    """
    (steps, items, _, _), starts = plan.sizes, plan.starts
    counts_fit = len(input_lengths) == items == len(target_lengths)
    if not (counts_fit and 0 <= min(input_lengths) <= max(input_lengths) <= steps and min(target_lengths) >= 0):
        _check_lengths("input", input_lengths, items, most=steps)
        _check_lengths("target", target_lengths, items)
    if starts is None:
        starts = [0, *accumulate(target_lengths)]
        elements, stride = plan.lengths
        if starts.pop() != elements:
            _require_size(targets, 0, sum(target_lengths))
        if stride != 1:
            starts = [start * stride for start in starts]
    numbers = [*input_lengths, *target_lengths, *starts]
    passed = numbers if items <= _MOST_IN_A_LAUNCH else _on_device(numbers, log_probs.device)
    return log_probs, targets, passed, plan.geometry


def _check_lengths(name: str, lengths: Sequence[int], items: int, most: int | None = None) -> None:
    """Raise what the CPU raises."""
    if len(lengths) != items:
        raise RuntimeError(f"{name}_lengths must be of size batch_size")
    if min(lengths) < 0:
        raise RuntimeError(f"Expected {name}_lengths to have value at least 0, but got value {min(lengths)} {_WHILE}")
    if most is not None and max(lengths) > most:
        raise RuntimeError(
            f"Expected {name}_lengths to have value at most {most}, but got value {max(lengths)} {_WHILE}"
        )


def _on_device(numbers: list[int], device: torch.device) -> torch.Tensor:
    return torch.frombuffer(array("q", numbers), dtype=torch.int64).to(device)


def _require_size(targets: torch.Tensor, dimension: int, size: int) -> None:
    if targets.shape[dimension] != size:
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension {dimension}, but got size {targets.shape[dimension]} "
            f"for argument #2 'targets' {_WHILE}"
        )


def fake_ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    *arguments: object,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The shapes of the results of `_ctc_loss`, for fake tensors; the lengths are numbers."""
    longest = max(target_lengths) if targets.dim() == 1 else targets.shape[1]
    steps, items, _ = log_probs.shape
    return log_probs.new_empty(items), log_probs.new_empty(items, steps, 2 * longest + 1)


def fake_ctc_loss_backward(grad: torch.Tensor, log_probs: torch.Tensor, *arguments: object) -> torch.Tensor:
    """The shape of the result of `_ctc_loss_backward`, for fake tensors."""
    return log_probs.new_empty(log_probs.shape)


KERNELS = (
    ("aten::_ctc_loss", ctc_loss),
    ("aten::_ctc_loss.Tensor", ctc_loss_tensor),
    ("aten::_ctc_loss_backward", ctc_loss_backward),
    ("aten::_ctc_loss_backward.Tensor", ctc_loss_backward_tensor),
)
FAKES = (
    ("aten::_ctc_loss", fake_ctc_loss),
    ("aten::_ctc_loss_backward", fake_ctc_loss_backward),
)
