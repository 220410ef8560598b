"""What losses share: torch's numbers for their reductions, and the reduction of the losses of the rows."""

from __future__ import annotations

import torch

from .outputs import resize_output

NONE, MEAN, SUM = 0, 1, 2


def reduce_losses(losses: torch.Tensor, reduction: int, *, keeps_rows: bool, out: torch.Tensor) -> torch.Tensor:
    """Write float32 losses of all rows, their mean or their sum to `out`, cast to its dtype, and return it.

    `keeps_rows`: without reduction there is a result a row; otherwise the input was one row and the result has no
    dimension.
    """
    if reduction != NONE and out.dtype == torch.float32:  # at once: to copy it would be a launch more
        resize_output(out, ())
        return torch.mean(losses, 0, out=out) if reduction == MEAN else torch.sum(losses, 0, out=out)
    if reduction == NONE:
        result = losses if keeps_rows else losses.reshape(())
    else:
        result = losses.mean() if reduction == MEAN else losses.sum()
    resize_output(out, result.shape)
    return out.copy_(result)


def check_loss_gradient(grad_output: torch.Tensor, reduction: int, rows: int) -> None:
    """Raise RuntimeError for a gradient that has not one number for all rows, nor, without reduction, one for each.

    Where the losses were reduced, the kernels read the first number alone.
    """
    if reduction == NONE and grad_output.dim() > 0:
        if grad_output.dim() != 1 or grad_output.shape[0] != rows:
            raise RuntimeError(
                f"Expected a tensor of dimension 1 and tensor.size[0] == {rows} but got: dimension "
                f"{grad_output.dim()} and tensor.size[0] = {grad_output.shape[0]}"
            )
    elif grad_output.numel() == 0:
        raise RuntimeError("Expected a gradient of one element but got an empty one")
