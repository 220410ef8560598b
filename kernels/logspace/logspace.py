"""Numbers whose logarithms are evenly spaced."""

from __future__ import annotations

import math
import struct

import torch

from ..runtime.operands import FLOATING
from ..runtime.outputs import contiguous_output, finish, resize_output
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
# The kernel computes with exponents of two up to this size. It is far from the largest float32.
_MOST_EXPONENT = 1e30
_CPP_NAMES = {torch.float32: "float", torch.float16: "c10::Half", torch.bfloat16: "c10::BFloat16"}


def logspace_out(start: complex, end: complex, steps: int, base: float = 10.0, *, out: torch.Tensor) -> torch.Tensor:
    """`logspace.out`: base ** start to base ** end in `steps` steps, for every dtype that the CPU takes.

    A kernel computes floating results of a positive base with about twice the digits of float32. All others need double
    precision or a branch of the logarithm. They depend only on the given numbers, so the host computes them and copies
    them to the device.
    """
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if out.numel() != steps:
        resize_output(out, (steps,))
    if steps == 0:
        return out
    limits = (_rounded(start, out.dtype), _rounded(end, out.dtype)) if out.dtype in FLOATING else None
    power = math.log2(base) if 0.0 < base < math.inf else math.inf
    if limits is None or steps == 1 or not all(abs(limit * power) <= _MOST_EXPONENT for limit in limits):
        values = torch.logspace(start, end, steps, base, dtype=out.dtype, device="cpu")
        return out.copy_(values.reshape(out.shape))
    result = contiguous_output(out)
    span = _rounded(limits[1] - limits[0], out.dtype)
    exponents = [number for x in (limits[0], limits[1], span / (steps - 1)) for number in _in_two(x * power)]
    _shader.kernel(f"logspace_{METAL_TYPES[out.dtype]}", out.device)(result, exponents, steps, threads=steps)
    return finish(out, result)


def _rounded(x: complex, dtype: torch.dtype) -> float:
    """The number rounded to the dtype. Raises RuntimeError, as the CPU does, if it overflows."""
    if not isinstance(x, complex):
        try:  # a tensor of float32 would cost 3 us
            number = _in_two(x)[0] if dtype == torch.float32 else float(torch.tensor(float(x), dtype=dtype))
        except OverflowError:
            number = math.inf
        if math.isfinite(number) or not math.isfinite(x):
            return number
    elif x.imag == 0.0:
        return _rounded(x.real, dtype)
    raise RuntimeError(f"value cannot be converted to type {_CPP_NAMES[dtype]} without overflow")


def _in_two(x: float) -> tuple[float, float]:
    """A float64 number as the sum of two float32 numbers."""
    (high,) = struct.unpack("f", struct.pack("f", x))
    return high, x - high


KERNELS = (("aten::logspace.out", logspace_out),)
