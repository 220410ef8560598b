"""The multi-label margin loss and its backward: a threadgroup for each row, whose threads share the classes."""

from __future__ import annotations

import torch

from ..runtime import rows as limits
from ..runtime.loss import MEAN, NONE, check_loss_gradient, fake_gradient, reduce_losses, rows_and_classes
from ..runtime.operands import not_implemented, require_device, require_scalar_type, require_supported
from ..runtime.outputs import (
    contiguous_output,
    finish,
    functional_form,
    refuse_internal_overlap,
    require_dtype,
    resize_output,
)
from ..runtime.rows import group_of_many_rows, is_too_long, launch_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
# Pairs of a class and a label that a group handles while one of its threads waits once.
_PAIRS_OF_STEP = 1024


def multilabel_margin_loss_forward_output(
    self: torch.Tensor, target: torch.Tensor, reduction: int, *, output: torch.Tensor, is_target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`multilabel_margin_loss_forward.output`: the loss, and ones where a class is a label of its row.

    A label out of range is ignored, and gives torch.AcceleratorError at the next synchronisation,
    from torch 2.11 on. So does a first negative number below -1.
    """
    rows, classes = _check(self, target)
    require_dtype(output, self.dtype, "multilabel_margin_loss_forward")
    require_dtype(is_target, self.dtype, "multilabel_margin_loss_forward")
    resize_output(is_target, target.shape)
    refuse_internal_overlap(is_target)
    if not self.numel():  # the CPU resizes it and does not write it
        resize_output(output, () if reduction != NONE or target.dim() <= 1 else (rows,))
        return output, is_target
    if _is_too_long(target, classes):
        loss, found = _aten.multilabel_margin_loss_forward(self.cpu().float(), target.cpu(), reduction)
        resize_output(output, loss.shape)
        return output.copy_(loss), is_target.copy_(found)
    losses = torch.empty(rows, dtype=torch.float32, device=self.device)
    marks = contiguous_output(is_target)
    kernel = _shader.kernel(f"multilabel_margin_loss_{METAL_TYPES[self.dtype]}", self.device)
    operands = (losses, marks, self.contiguous(), target.contiguous(), classes)
    launch_rows(kernel, rows, group_of_many_rows(rows, classes), *operands, reports=True)
    finish(is_target, marks)
    return reduce_losses(losses, reduction, keeps_rows=target.dim() > 1, out=output), is_target


def multilabel_margin_loss_forward(
    self: torch.Tensor, target: torch.Tensor, reduction: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`multilabel_margin_loss_forward`, new tensors."""
    output = torch.empty(0, dtype=self.dtype, device=self.device) if self.numel() else self.new_zeros(())
    is_target = torch.empty(target.shape, dtype=self.dtype, device=self.device)
    return multilabel_margin_loss_forward_output(self, target, reduction, output=output, is_target=is_target)


def multilabel_margin_loss_backward_grad_input(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    target: torch.Tensor,
    reduction: int,
    is_target: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    """`multilabel_margin_loss_backward.grad_input`, of the input's shape.

    Marks of labels that are not between 0 and 1, and labels out of range, give torch.AcceleratorError at the next
    synchronisation, from torch 2.11 on.
    """
    rows, classes = _check(self, target)
    if is_target.shape != target.shape:
        raise RuntimeError(f"inconsistent is_target size: {list(is_target.shape)} for a target of {list(target.shape)}")
    require_device(self, {"grad_output": grad_output, "is_target": is_target}, "multilabel_margin_loss_backward")
    if is_target.is_complex():  # the CPU computes its minimum before it checks the dtype
        raise not_implemented("min_all", is_target.dtype)
    require_scalar_type(is_target, self.dtype)
    require_scalar_type(grad_output, self.dtype)
    check_loss_gradient(grad_output, reduction, rows)
    require_dtype(grad_input, self.dtype, "multilabel_margin_loss_backward")
    resize_output(grad_input, self.shape)
    refuse_internal_overlap(grad_input)
    if not self.numel():
        return grad_input
    if _is_too_long(target, classes):
        gradient, x, marks = (x.cpu().float() for x in (grad_output, self, is_target))
        return grad_input.copy_(_aten.multilabel_margin_loss_backward(gradient, x, target.cpu(), reduction, marks))
    x = self.contiguous()
    gradient = contiguous_output(grad_input)
    kernel = _shader.kernel(f"multilabel_margin_loss_backward_{METAL_TYPES[x.dtype]}", x.device)
    operands = (gradient, x, target.contiguous(), is_target.contiguous(), grad_output.contiguous())
    numbers = (1.0 / rows if reduction == MEAN else 1.0, [classes, int(reduction == NONE and grad_output.dim() > 0)])
    launch_rows(kernel, rows, group_of_many_rows(rows, classes), *operands, *numbers, reports=True)
    return finish(grad_input, gradient)


def _is_too_long(target: torch.Tensor, classes: int) -> bool:
    """Whether the threads of a row would take too long: each of 256 takes a share of the classes for each label."""
    if classes * classes // _PAIRS_OF_STEP <= limits.MOST_STEPS:
        return False
    labels = int((target.reshape(-1, classes) >= 0).sum(-1).max())  # read back where it matters alone
    return is_too_long(
        "multilabel_margin_loss", classes * labels // _PAIRS_OF_STEP, f"{labels} labels among {classes} classes"
    )


multilabel_margin_loss_backward = functional_form(multilabel_margin_loss_backward_grad_input, "grad_input")


def _check(x: torch.Tensor, target: torch.Tensor) -> tuple[int, int]:
    """Rows and classes. Raises what the CPU raises."""
    require_device(x, {"target": target}, "multilabel_margin_loss")
    require_supported(x, "multilabel_margin_loss")
    rows, classes = rows_and_classes(x)
    fits = target.shape == x.shape if x.dim() == 2 else target.dim() <= 1 and target.numel() == classes
    if not fits:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}")
    require_scalar_type(target, torch.int64)
    return rows, classes


KERNELS = (
    ("aten::multilabel_margin_loss_forward", multilabel_margin_loss_forward),
    ("aten::multilabel_margin_loss_forward.output", multilabel_margin_loss_forward_output),
    ("aten::multilabel_margin_loss_backward", multilabel_margin_loss_backward),
    ("aten::multilabel_margin_loss_backward.grad_input", multilabel_margin_loss_backward_grad_input),
)
# Torch's decomposition counts the first class once for each position after the labels, on every device.
EXTERN = ("aten::multilabel_margin_loss_forward",)
FAKES = (("aten::multilabel_margin_loss_backward", fake_gradient),)
