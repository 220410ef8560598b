"""The calls that verify and time the family."""

from __future__ import annotations

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import probabilities
from ..verification.workload import Workload

_OPERATORS = ("aten::logit", "aten::logit_backward")

CASES = (
    KernelCall(
        "logit", _OPERATORS, torch.logit, probabilities(), gradients=(0,), elementwise=True, special_values=True
    ),
    KernelCall(
        "logit",
        _OPERATORS,
        torch.logit,
        probabilities(0.125),
        variant="eps",
        gradients=(0,),
        elementwise=True,
        special_values=True,
    ),
    KernelCall(
        "logit_",
        ("aten::logit_",),
        torch.Tensor.logit_,
        probabilities(0.125),
        elementwise=True,
        special_values=True,
        expands=False,
    ),
)


WORKLOAD = Workload("aten::logit_", lambda x: x.logit_(1e-6), lambda n: (torch.rand(n),))
