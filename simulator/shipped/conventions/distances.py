"""`_cdist_backward`: the gradient of distances of all pairs of rows.

Source: `_cdist_backward_mps` of aten/src/ATen/native/mps/operations (mid 2026), which computes order 2 with other
operators, as `_cdist_forward` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import torch
from torch import Tensor

from ..call import Call
from ..iterator import broadcast
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .metal_types import metal_name

_SMALL_GROUP, _LARGE_GROUP = 32, 128


def cdist_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """One thread for each component of the first rows, which loops over all second rows."""
    first, second, order = call["x1"], call["x2"], call["p"]
    reduced = first.dtype in (torch.float16, torch.bfloat16)
    if order in (0, 2) or (order == inf and reduced):
        raise Declined("other operators answer for this order")
    batch = broadcast([tuple(first.shape[:-2]), tuple(second.shape[:-2])])
    rows, others, columns = first.size(-2), second.size(-2), first.size(-1)
    if not prod(batch) * rows * others * columns:
        raise Declined("a sum over nothing is filled with zeros")
    gradient, distance = (call[name].expand(*batch, rows, others).contiguous() for name in ("grad", "cdist"))
    steps: list[Step] = []
    if distance.dtype != torch.float32:
        converted = torch.empty(distance.shape, dtype=torch.float32, device="cpu")
        steps.append(copied(kernels, converted, distance))
        distance = converted
    kind = 1 if order == inf else 0 if order == 1 else 2
    group = _LARGE_GROUP if columns >= 2 * _SMALL_GROUP else _SMALL_GROUP
    arguments: dict[str, object] = {
        "x1": first.expand(*batch, rows, columns).contiguous(),
        "x2": second.expand(*batch, others, columns).contiguous(),
        "grad": gradient,
        "cdist": distance,
        "out": _dense(call.result),
        "params": {"B": prod(batch), "P": rows, "R": others, "D": columns, "p_minus_1": order - 1},
    }
    name = required(kernels, f"cdist_backward_{metal_name(first.dtype)}_p{kind}_tg{group}")
    threads = (-(-columns // group) * group, rows, prod(batch))
    return [*steps, KernelLaunch(name, arguments, threads, (group, 1, 1))]


def _dense(result: Tensor) -> Tensor:
    if not result.is_contiguous():
        raise Declined("a result that is not contiguous")
    return result


PLANNERS: dict[str, Planner] = {"_cdist_backward": cdist_backward}
