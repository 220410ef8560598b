"""Numbers of Python in the place of tensors, as operators get them; what wraps a kernel has to hand them on.

A tensor that stands for a number gives way to other dtypes when types are promoted; no function of torch makes one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# By type, a tensor that stands for a number of Python.
_wrapped: dict[type, Tensor] = {}


def prepare_wrapped_numbers() -> None:
    """Make the tensors that stand for numbers, as an operator gets them; the only way to one is through autograd.

    To be called outside every kernel: inside one, autograd is off.
    """
    for kind in (bool, int, float, complex):
        if kind not in _wrapped:
            with torch.inference_mode(False), torch.enable_grad():
                one = torch.ones((), dtype=torch.complex64, device="cpu", requires_grad=True)
                node: Any = (one * kind(1)).grad_fn
            _wrapped[kind] = node._saved_other


def as_operators_get_it(value: Any) -> Any:
    """A number in the place of a tensor as the tensor that the dispatcher made of it; Python is shown the number."""
    if not isinstance(value, (bool, int, float, complex)):
        return value
    wrapped = _wrapped[type(value)].detach()
    number = torch.scalar_tensor(value, dtype=wrapped.dtype, device="cpu")
    return wrapped.set_(number.untyped_storage(), 0, (), ())
