"""Assertions that the device checks: `aten/src/ATen/native/mps/operations/Assert.mm` (main, late 2026)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from ..call import Call
from ..plan import ERROR_BUFFER, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required

_INTEGERS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _assert_async(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """One thread checks the only element as an integer of its size, and reports to the error buffer."""
    condition = call["self"]
    width = condition.element_size()
    message = call.arguments.get("assert_msg", "Expected Tensor with single nonzero value, but got zero")
    name = required(kernels, f"assert_async_{width}")
    arguments = {"input": condition.view(_INTEGERS[width]), "msg": message.encode() + b"\0", "error_buf": ERROR_BUFFER}
    return [KernelLaunch(name, arguments, *in_line(1))]


PLANNERS: dict[str, Planner] = {"_assert_async": _assert_async, "_assert_async.msg": _assert_async}
