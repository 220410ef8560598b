"""Common parts of losses: torch's numbers for reductions, checks, and the reduction of the losses of all rows."""

from __future__ import annotations

import torch

from .outputs import resize_output

NONE, MEAN, SUM = 0, 1, 2


def reduce_losses(losses: torch.Tensor, reduction: int, *, keeps_rows: bool, out: torch.Tensor) -> torch.Tensor:
    """Write float32 losses of all rows, their mean or their sum to `out`, cast to its dtype, and return it.

    `keeps_rows`: without reduction there is a result for each row. If false, the input was one row, and the result has
    no dimension.
    """
    if reduction != NONE and out.dtype == torch.float32:  # directly, which saves the launch of a copy
        resize_output(out, ())
        return torch.mean(losses, 0, out=out) if reduction == MEAN else torch.sum(losses, 0, out=out)
    if reduction == NONE:
        result = losses if keeps_rows else losses.reshape(())
    else:
        result = losses.mean() if reduction == MEAN else losses.sum()
    resize_output(out, result.shape)
    return out.copy_(result)


def rows_and_classes(x: torch.Tensor) -> tuple[int, int]:
    """The numbers of rows and classes. Raises RuntimeError with torch's text unless `x` is a vector or a matrix."""
    shape = x.shape
    if len(shape) > 2 or (shape and not shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )
    return (shape[0], shape[1]) if len(shape) == 2 else (1, x.numel())


def fake_gradient(grad_output: torch.Tensor, self: torch.Tensor, *arguments: object, **options: object) -> torch.Tensor:
    """The shape and dtype of the gradient of a loss, for fake tensors."""
    return self.new_empty(self.shape)


def check_loss_gradient(grad_output: torch.Tensor, reduction: int, rows: int) -> None:
    """Raise RuntimeError unless a gradient has one number for all rows or, without reduction, one for each row.

    If the losses were reduced, the kernels read only the first number.
    """
    if reduction == NONE and grad_output.dim() > 0:
        if grad_output.dim() != 1 or grad_output.shape[0] != rows:
            raise RuntimeError(
                f"Expected a tensor of dimension 1 and tensor.size[0] == {rows} but got: dimension "
                f"{grad_output.dim()} and tensor.size[0] = {grad_output.shape[0]}"
            )
    elif grad_output.numel() == 0:
        raise RuntimeError("Expected a gradient of one element but got an empty one")
