"""The calls that verify and time the family."""

from __future__ import annotations

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import one_tensor
from ..verification.workload import Workload, normal

CASES = (
    KernelCall(
        "nn.functional.softshrink",
        ("aten::softshrink", "aten::softshrink_backward"),
        torch.nn.functional.softshrink,
        one_tensor(0.75),
        gradients=(0,),
        elementwise=True,
        special_values=True,
    ),
)


WORKLOAD = Workload("aten::softshrink.out", torch.nn.functional.softshrink, normal)
