"""Products with 8-bit weights: aten/src/ATen/native/mps/operations/Quantized.mm, and the 2.13.0 binary.

Those with 4-bit weights have kernels, too, but the CPU has no operator to use as their stand-in.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .metal_types import metal_name

_MULTIPLE = 32
"""The host code refuses weights whose sizes are not multiples of this; the kernels do not write such elements."""

_FEWEST_ROWS_OF_MATRICES = 12
"""With fewer rows a kernel goes row by row; from here on `large_m_int8pack_mm` takes tiles of 32 x 64."""


def _weight_int8pack_mm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    if call["self"].shape[0] >= _FEWEST_ROWS_OF_MATRICES:
        raise Declined(
            "twelve rows and more, whose kernel lacks two barriers: its result depends on the order of the threads"
        )
    left, weight, scales = call["self"].contiguous(), call["mat2"].contiguous(), call["scales"].contiguous()
    rows, inner = left.shape
    columns = weight.shape[0]
    if columns % _MULTIPLE or inner % _MULTIPLE:
        raise Declined(f"a weight of {columns} x {inner}, which the host code refuses: no multiples of {_MULTIPLE}")
    arguments = {
        "A": left,
        "B": weight,
        "scalesAndZeros": scales,
        "outputData": call.result,
        "sizes": [rows, inner, columns],
    }
    name = required(kernels, f"int8pack_mv_{metal_name(left.dtype)}")
    return [KernelLaunch(name, arguments, (-(-columns // 8) * 64, rows, 1), (64, 1, 1), (32,))]


PLANNERS: dict[str, Planner] = {"_weight_int8pack_mm": _weight_int8pack_mm}
