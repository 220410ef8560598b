"""What verifies the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values


def _tables(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for columns in (5, 300):
        for norm in (0.0, 1.0, 2.0, 3.0, -1.0, math.inf, -math.inf):
            yield values((6, columns), dtype), torch.tensor([[3, 3, 1], [0, 5, 1]]), 1.5, norm


CASES = (
    KernelCall(
        "embedding_renorm_",
        ("aten::embedding_renorm_",),
        torch.embedding_renorm_,
        _tables,
        (*FLOATING, torch.complex64),
        expands=False,
    ),
)
