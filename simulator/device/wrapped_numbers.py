"""Makes wrapped numbers: the tensors that operators get for Python numbers. Kernel wrappers must pass them on.

A wrapped number has the lowest priority in type promotion. No function of torch creates one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# A wrapped number of each type.
_wrapped: dict[type, Tensor] = {}


def prepare_wrapped_numbers() -> None:
    """Create the wrapped numbers, which is possible only through autograd.

    Call it outside of kernels: inside of one, autograd is off.
    """
    for kind in (bool, int, float, complex):
        if kind not in _wrapped:
            with torch.inference_mode(False), torch.enable_grad():
                scalar = torch.ones((), dtype=torch.complex64, device="cpu", requires_grad=True)
                node: Any = (scalar * kind(1)).grad_fn
            _wrapped[kind] = node._saved_other


def wrapped_number(value: Any) -> Any:
    """The wrapped number for a Python number; other values do not change."""
    if not isinstance(value, (bool, int, float, complex)):
        return value
    wrapped = _wrapped[type(value)].detach()
    number = torch.scalar_tensor(value, dtype=wrapped.dtype, device="cpu")
    return wrapped.set_(number.untyped_storage(), 0, (), ())
