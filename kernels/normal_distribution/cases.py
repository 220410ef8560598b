"""The calls that verify and time the family."""

from __future__ import annotations

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import one_tensor, probabilities, rounded_once
from ..verification.workload import Workload

CASES = (
    KernelCall(
        "special.ndtri",
        ("aten::special_ndtri",),
        rounded_once(torch.special.ndtri),
        probabilities(),
        REAL,
        gradients=(0,),
        elementwise=True,
        special_values=True,
    ),
    KernelCall(
        "special.log_ndtr",
        ("aten::special_log_ndtr",),
        rounded_once(torch.special.log_ndtr),
        one_tensor(scale=4.0),
        REAL,
        elementwise=True,
        special_values=True,
    ),
    # In half precision torch's own formula for the gradient, exp(-(result + x * x / 2)), loses all digits on every
    # device. The kernel is not involved.
    KernelCall(
        "special.log_ndtr",
        ("aten::special_log_ndtr",),
        torch.special.log_ndtr,
        one_tensor(scale=4.0),
        (torch.float32,),
        variant="gradient",
        gradients=(0,),
        elementwise=True,
    ),
)


WORKLOAD = Workload("aten::special_ndtri.out", torch.special.ndtri, lambda n: (torch.rand(n),))
