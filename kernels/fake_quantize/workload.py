"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload(
    "aten::fake_quantize_per_tensor_affine_cachemask",
    lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
    normal,
)
