"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import SHAPES, one_tensor, values
from ..verification.workload import Workload, normal

_aten = torch.ops.aten
_numbers = one_tensor(special=(math.nan, 0.0, 100.0, -100.0))


def _fake_quantize(x: torch.Tensor) -> Any:
    return _aten.fake_quantize_per_tensor_affine_cachemask(x, 0.25, 3, -5, 11)


def _with_tensors(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, enabled: torch.Tensor) -> Any:
    return _aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, zero, enabled, -5, 11)


def _numbers_and_tensors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for enabled in (0, 1):
        for shape in SHAPES:
            zero = torch.tensor([3], dtype=torch.int32)
            yield values(shape, dtype), torch.tensor([0.25]), zero, torch.tensor([enabled])


CASES = (
    KernelCall(
        "fake_quantize_per_tensor_affine_cachemask",
        ("aten::fake_quantize_per_tensor_affine_cachemask",),
        _fake_quantize,
        _numbers,
        gradients=(0,),
        elementwise=True,
    ),
    KernelCall(
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        ("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",),
        _with_tensors,
        _numbers_and_tensors,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Empty parameters."""
    parameters = torch.empty(0), torch.zeros(1, dtype=torch.int32), torch.ones(1, dtype=torch.int64)
    overload = _aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    yield RefusedCall("a scale without elements", overload, (values((4, 5), torch.float32), *parameters, 0, 255))


WORKLOAD = Workload(
    "aten::fake_quantize_per_tensor_affine_cachemask",
    lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
    normal,
)
