"""`flip`: copies elements along dimensions that run backwards.

2.13.0 flips in MPSGraph. How 2.15.0 binds its kernels was read from the kernels' code: strides are in bytes, those of
flipped dimensions are negative, and the input starts at the last element there. `flip_direct_*` has up to three
dimensions in its grid, `flip_*` decomposes an index.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call import Call
from ..iterator import geometry_of
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line
from .copies import copied
from .operands import as_bits, bit_name, in_box

_DIRECT = 3


def _flip(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, result = call["self"], call.result
    flipped = {dim % max(source.dim(), 1) for dim in call["dims"]}
    flipped = {d for d in flipped if source.dim() and source.size(d) > 1 and source.stride(d)}
    if source.numel() <= 1 or not flipped:
        return [copied(kernels, result, source)]
    kernel = f"flip_{bit_name(result)}"
    if kernel not in kernels:
        raise Declined("MPSGraph")
    size = source.element_size()
    signed = tuple(-stride if d in flipped else stride for d, stride in enumerate(source.stride()))
    walk = geometry_of(((tuple(result.shape), result.stride(), size), (tuple(source.shape), signed, size)))
    if not walk.fits_32_bits:
        raise Declined("offsets of more than 32 bits")
    last = sum((source.size(d) - 1) * source.stride(d) for d in flipped)
    bits = as_bits(source)
    start = bits.as_strided((1,), (1,), bits.storage_offset() + last)
    output_strides, input_strides = (list(strides) for strides in walk.strides)
    buffers = {"output": as_bits(result), "input": start}
    dimensions = len(walk.shape)
    if dimensions <= _DIRECT:
        missing = _DIRECT - dimensions
        x, y, z = [*walk.shape, *[1] * missing]
        strides = {
            "output_strides": [*output_strides, *[0] * missing],
            "input_strides": [*input_strides, *[0] * missing],
        }
        return [KernelLaunch(f"flip_direct_{bit_name(result)}", {**buffers, **strides}, *in_box(x, y, z))]
    layout = {"sizes": list(walk.shape), "output_strides": output_strides, "input_strides": input_strides}
    return [KernelLaunch(kernel, {**buffers, **layout, "ndim": dimensions}, *in_line(walk.numel))]


PLANNERS: dict[str, Planner] = {"flip": _flip}
