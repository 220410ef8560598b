"""The multi-label margin loss and its backward: a threadgroup a row, every thread its share of the classes."""

from __future__ import annotations

import torch

from ..runtime.elementwise import FLOATING
from ..runtime.loss import MEAN, NONE, check_loss_gradient, reduce_losses
from ..runtime.operands import not_implemented, require_device, require_scalar_type
from ..runtime.outputs import refuse_internal_overlap, require_dtype, resize_output
from ..runtime.rows import group_of_many_rows, launch_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)


def multilabel_margin_loss_forward_output(
    self: torch.Tensor, target: torch.Tensor, reduction: int, *, output: torch.Tensor, is_target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`multilabel_margin_loss_forward.output`: the loss, and ones where a class is a label of its row.

    A label that is no class counts nothing, and gives torch.AcceleratorError at the next synchronisation,
    from torch 2.11 on, as does the first negative number where it is below -1.
    """
    rows, classes = _check(self, target)
    require_dtype(output, self.dtype, "multilabel_margin_loss_forward")
    require_dtype(is_target, self.dtype, "multilabel_margin_loss_forward")
    resize_output(is_target, target.shape)
    refuse_internal_overlap(is_target)
    if not self.numel():  # the CPU gives it its size, and leaves what it holds
        resize_output(output, () if reduction != NONE or target.dim() <= 1 else (rows,))
        return output, is_target
    losses = torch.empty(rows, dtype=torch.float32, device=self.device)
    marks = is_target if is_target.is_contiguous() else torch.empty_like(is_target.contiguous())
    kernel = _shader.kernel(f"multilabel_margin_loss_{METAL_TYPES[self.dtype]}", self.device)
    launch_rows(
        kernel,
        rows,
        group_of_many_rows(rows, classes),
        losses,
        marks,
        self.contiguous(),
        target.contiguous(),
        classes,
        reports=True,
    )
    if marks is not is_target:
        is_target.copy_(marks)
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

    Marks of labels that are not between 0 and 1, and labels that are no class, give torch.AcceleratorError at the next
    synchronisation, from torch 2.11 on.
    """
    rows, classes = _check(self, target)
    if is_target.shape != target.shape:
        raise RuntimeError(f"inconsistent is_target size: {list(is_target.shape)} for a target of {list(target.shape)}")
    require_device(self, {"grad_output": grad_output, "is_target": is_target}, "multilabel_margin_loss_backward")
    if is_target.is_complex():  # the CPU looks for its least number before it looks at the dtype
        raise not_implemented("min_all", is_target.dtype)
    require_scalar_type(is_target, self.dtype)
    require_scalar_type(grad_output, self.dtype)
    check_loss_gradient(grad_output, reduction, rows)
    require_dtype(grad_input, self.dtype, "multilabel_margin_loss_backward")
    resize_output(grad_input, self.shape)
    refuse_internal_overlap(grad_input)
    if not self.numel():
        return grad_input
    x = self.contiguous()
    gradient = grad_input if grad_input.is_contiguous() else torch.empty_like(x)
    kernel = _shader.kernel(f"multilabel_margin_loss_backward_{METAL_TYPES[x.dtype]}", x.device)
    launch_rows(
        kernel,
        rows,
        group_of_many_rows(rows, classes),
        gradient,
        x,
        target.contiguous(),
        is_target.contiguous(),
        grad_output.contiguous(),
        1.0 / rows if reduction == MEAN else 1.0,
        [classes, int(reduction == NONE and grad_output.dim() > 0)],
        reports=True,
    )
    return grad_input if gradient is grad_input else grad_input.copy_(gradient)


def multilabel_margin_loss_backward(
    grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor, reduction: int, is_target: torch.Tensor
) -> torch.Tensor:
    """`multilabel_margin_loss_backward`, a new tensor."""
    grad_input = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return multilabel_margin_loss_backward_grad_input(
        grad_output, self, target, reduction, is_target, grad_input=grad_input
    )


def _check(x: torch.Tensor, target: torch.Tensor) -> tuple[int, int]:
    """Rows and classes. Raises with torch's texts for devices and shapes that do not fit."""
    require_device(x, {"target": target}, "multilabel_margin_loss")
    if x.dtype not in FLOATING:
        raise NotImplementedError(f"multilabel_margin_loss is not implemented for {x.dtype} on mps")
    if x.dim() > 2 or (x.dim() == 2 and x.shape[1] == 0) or (x.dim() == 1 and x.shape[0] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}"
        )
    rows, classes = (x.shape[0], x.shape[1]) if x.dim() == 2 else (1, x.numel())
    fits = target.shape == x.shape if x.dim() == 2 else target.dim() <= 1 and target.numel() == classes
    if not fits:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}")
    require_scalar_type(target, torch.int64)
    return rows, classes


def fake_gradient(grad_output: torch.Tensor, self: torch.Tensor, *arguments: object) -> torch.Tensor:
    """What comes out of `multilabel_margin_loss_backward`."""
    return self.new_empty(self.shape)


KERNELS = (
    ("aten::multilabel_margin_loss_forward", multilabel_margin_loss_forward),
    ("aten::multilabel_margin_loss_forward.output", multilabel_margin_loss_forward_output),
    ("aten::multilabel_margin_loss_backward", multilabel_margin_loss_backward),
    ("aten::multilabel_margin_loss_backward.grad_input", multilabel_margin_loss_backward_grad_input),
)
# torch's decomposition counts the first class once for each place behind the labels, on every device.
EXTERN = ("aten::multilabel_margin_loss_forward",)
FAKES = (("aten::multilabel_margin_loss_backward", fake_gradient),)
