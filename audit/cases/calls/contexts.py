"""Contexts for overloads that can only be called in inference mode, in forward mode or on a tensor with autograd.

The context is entered around the call only, on the device of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

Call = Callable[..., Any]


def in_inference_mode(overload: Call, *args: Any, **kwargs: Any) -> Any:
    """With inference tensors; the result is an ordinary one."""
    with torch.inference_mode():
        copies = [arg.clone() if isinstance(arg, Tensor) else arg for arg in args]
        result = overload(*copies, **kwargs)
    return result.clone() if isinstance(result, Tensor) else result


def at_a_dual_level(overload: Call, *args: Any, **kwargs: Any) -> Any:
    """Inside forward-mode differentiation; returns the primal and the tangent of the result."""
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(overload(*args, **kwargs)))  # type: ignore[no-untyped-call]


def without_gradients(overload: Call, *args: Any, **kwargs: Any) -> Any:
    """As backward formulas run."""
    with torch.no_grad():
        return overload(*args, **kwargs)


def retaining_gradients(overload: Call, tensor: Tensor) -> Any:
    """On a result of autograd, which then keeps the gradient that the backward gives it."""
    result = tensor.detach().requires_grad_() * 2
    overload(result)
    (result * result).sum().backward()  # type: ignore[no-untyped-call]
    return result.grad


def backward(overload: Call, tensor: Tensor, inputs: list[Tensor], gradient: Tensor) -> Any:
    """From a product with the inputs, which then hold the gradients."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    product = tensor.detach()
    for leaf in leaves:
        product = product * leaf
    overload(product, leaves, gradient)
    return [leaf.grad for leaf in leaves]


CONTEXTS: dict[str, Callable[..., Any]] = {
    "aten::_fw_primal_copy": in_inference_mode,
    "aten::_fw_primal_copy.out": in_inference_mode,
    "aten::_make_dual_copy": in_inference_mode,
    "aten::_make_dual_copy.out": in_inference_mode,
    "aten::_make_dual": at_a_dual_level,
    "aten::_thnn_fused_lstm_cell_backward": without_gradients,
    "aten::retain_grad": retaining_gradients,
    "aten::_backward": backward,
}
