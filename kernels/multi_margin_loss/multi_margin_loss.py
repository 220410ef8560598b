"""The multi-class margin loss and its backward: a threadgroup for each row, sums in float32."""

from __future__ import annotations

import math

import torch

from ..runtime.loss import MEAN, NONE, SUM, check_loss_gradient, fake_gradient, reduce_losses, rows_and_classes
from ..runtime.operands import require_device, require_scalar_type, require_supported
from ..runtime.outputs import (
    contiguous_output,
    finish,
    functional_form,
    refuse_internal_overlap,
    require_dtype,
    resize_output,
)
from ..runtime.rows import MOST_THREADS, fill_on_cpu, group_of_many_rows, is_too_long, launch_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def multi_margin_loss_out(
    self: torch.Tensor,
    target: torch.Tensor,
    p: float = 1,
    margin: float = 1,
    weight: torch.Tensor | None = None,
    reduction: int = MEAN,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`multi_margin_loss.out`.

    A target out of range makes the loss NaN, and gives torch.AcceleratorError at the next synchronisation,
    from torch 2.11 on.
    """
    rows, classes, power = _check(self, target, p, weight)
    require_dtype(out, self.dtype, "multi_margin_loss")
    if not rows:  # the CPU resizes it and does not write it
        resize_output(out, (0,) if reduction == NONE and target.dim() > 0 else ())
        return out
    if is_too_long("multi_margin_loss", classes // MOST_THREADS, "{} classes", classes):
        resize_output(out, target.shape if reduction == NONE else ())
        fill_on_cpu([out], _aten.multi_margin_loss, self, target, p, margin, weight, reduction)
        return out
    losses = torch.empty(rows, dtype=torch.float32, device=self.device)
    x, chosen, weights = _operands(self, target, weight)
    kernel = _shader.kernel(f"multi_margin_loss_{METAL_TYPES[x.dtype]}", x.device)
    operands = (
        losses,
        x,
        chosen,
        weights,
        _factors(margin, power, rows, reduction),
        [classes, int(weight is not None)],
    )
    launch_rows(kernel, rows, group_of_many_rows(rows, classes), *operands, reports=True)
    # Each row has its share of the mean: the sum of all may be beyond float32 where the mean is not.
    return reduce_losses(losses, SUM if reduction == MEAN else reduction, keeps_rows=target.dim() > 0, out=out)


def multi_margin_loss(
    self: torch.Tensor,
    target: torch.Tensor,
    p: float = 1,
    margin: float = 1,
    weight: torch.Tensor | None = None,
    reduction: int = MEAN,
) -> torch.Tensor:
    """`multi_margin_loss`: a loss a row, their mean or their sum; the mean of no rows is NaN."""
    if reduction == NONE or self.numel():
        out = torch.empty(0, dtype=self.dtype, device=self.device)
    else:  # the CPU leaves the mean uninitialised, and the sum zero
        out = self.new_full((), math.nan if reduction == MEAN else 0.0)
    return multi_margin_loss_out(self, target, p, margin, weight, reduction, out=out)


def multi_margin_loss_backward_grad_input(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    target: torch.Tensor,
    p: float,
    margin: float,
    weight: torch.Tensor | None = None,
    reduction: int = MEAN,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    """`multi_margin_loss_backward.grad_input`, of the input's shape."""
    rows, classes, power = _check(self, target, p, weight)
    require_device(self, {"grad_output": grad_output}, "multi_margin_loss_backward")
    require_scalar_type(grad_output, self.dtype)
    check_loss_gradient(grad_output, reduction, rows)
    require_dtype(grad_input, self.dtype, "multi_margin_loss_backward")
    resize_output(grad_input, self.shape)
    refuse_internal_overlap(grad_input)
    if not rows:
        return grad_input
    if is_too_long("multi_margin_loss_backward", classes // MOST_THREADS, "{} classes", classes):
        arguments = (grad_output, self, target, p, margin, weight, reduction)
        fill_on_cpu([grad_input], _aten.multi_margin_loss_backward, *arguments)
        return grad_input
    x, chosen, weights = _operands(self, target, weight)
    gradient = contiguous_output(grad_input)
    kernel = _shader.kernel(f"multi_margin_loss_backward_{METAL_TYPES[x.dtype]}", x.device)
    factors = _factors(margin, power, rows, reduction)
    switches = [classes, int(weight is not None), int(reduction == NONE and grad_output.dim() > 0)]
    operands = (gradient, x, chosen, weights, grad_output.contiguous(), factors, switches)
    launch_rows(kernel, rows, group_of_many_rows(rows, classes), *operands, reports=True)
    return finish(grad_input, gradient)


multi_margin_loss_backward = functional_form(multi_margin_loss_backward_grad_input, "grad_input")


def _check(x: torch.Tensor, target: torch.Tensor, p: float, weight: torch.Tensor | None) -> tuple[int, int, float]:
    """Rows, classes, and the truncated power. Raises what the CPU raises."""
    require_device(x, {"target": target, "weight": weight}, "multi_margin_loss")
    if not math.isfinite(p):
        raise RuntimeError("value cannot be converted to type int without overflow")
    if int(p) not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    require_supported(x, "multi_margin_loss")
    rows, classes = rows_and_classes(x)
    if target.dim() > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows}], but got {list(target.shape)}. Input has shape {list(x.shape)}."
        )
    require_scalar_type(target, torch.int64)
    if weight is not None and (weight.dim() > 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if weight is not None:
        require_scalar_type(weight, x.dtype)
    return rows, classes, float(int(p))


def _factors(margin: float, power: float, rows: int, reduction: int) -> list[float]:
    return [float(margin), power, 1.0 / rows if reduction == MEAN else 1.0]


def _operands(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The contiguous operands; the input is passed as a placeholder if there are no weights."""
    x = x.contiguous()
    return x, target.contiguous(), x if weight is None else weight.contiguous()


KERNELS = (
    ("aten::multi_margin_loss", multi_margin_loss),
    ("aten::multi_margin_loss.out", multi_margin_loss_out),
    ("aten::multi_margin_loss_backward", multi_margin_loss_backward),
    ("aten::multi_margin_loss_backward.grad_input", multi_margin_loss_backward_grad_input),
)
# Inductor decomposes the loss, and every thread of its reduction then adds the whole sum to the target's gradient.
EXTERN = ("aten::multi_margin_loss",)
FAKES = (("aten::multi_margin_loss_backward", fake_gradient),)
