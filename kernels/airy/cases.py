"""The calls that verify and time the family."""

from __future__ import annotations

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import one_tensor, rounded_once
from ..verification.workload import Workload, normal

CASES = (
    KernelCall(
        "special.airy_ai",
        ("aten::special_airy_ai",),
        rounded_once(torch.special.airy_ai),
        one_tensor(),
        REAL,
        elementwise=True,
        special_values=True,
    ),
)


WORKLOAD = Workload("aten::special_airy_ai.out", torch.special.airy_ai, normal)
