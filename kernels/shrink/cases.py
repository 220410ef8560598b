"""What verifies the family."""

from __future__ import annotations

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import one_tensor

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
