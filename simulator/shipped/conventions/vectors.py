"""Operators on vectors of a tensor: `linalg_cross` and `renorm`.

Source: CrossKernel.mm and RenormKernel.mm of aten/src/ATen/native/mps/operations (2026).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .binary_kernels import binary
from .layouts import wrapped
from .metal_types import metal_name
from .vector_norms import norm


def cross(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """A thread for each product; if all tensors are contiguous, the kernel only needs the stride between components."""
    out = call.result
    left, right = (call[name].expand_as(out) for name in ("self", "other"))
    dimension = wrapped(call["dim"], out.dim())
    arguments: dict[str, object] = {"out": out, "input": left, "other": right}
    if all(tensor.is_contiguous() for tensor in (out, left, right)):
        name = f"cross_dense_{metal_name(out.dtype)}"
        arguments["dim_stride"] = out.stride(dimension)
    else:
        name = f"cross_strided_{metal_name(out.dtype)}"
        sizes = [size for d, size in enumerate(out.shape) if d != dimension]
        arguments |= {"squashed_sizes": sizes or [1], "ndim": out.dim(), "dim": dimension}
        arguments |= {"out_strides": list(out.stride()), "input_strides": list(left.stride())}
        arguments["other_strides"] = list(right.stride())
    return [KernelLaunch(required(kernels, name), arguments, *in_line(out.numel() // 3))]


def renorm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Compute the norms of the slices and a factor for each, then multiply."""
    given: Tensor = call["self"]
    kept = wrapped(call["dim"], given.dim())
    shape = [size if d == kept else 1 for d, size in enumerate(given.shape)]
    norms, factors = (torch.empty(shape, dtype=given.dtype, device="cpu") for _ in range(2))
    name = required(kernels, f"renorm_{metal_name(given.dtype)}")
    arguments: dict[str, object] = {"norm": norms, "factor": factors, "maxnorm": float(call["maxnorm"])}
    scaling = KernelLaunch(name, arguments, *in_line(norms.numel()))
    steps = norm(kernels, norms, given, float(call["p"]))
    return [*steps, scaling, binary(kernels, "mul", call.result, given, factors)]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("linalg_cross", "linalg_cross.out"), cross),
    **dict.fromkeys(("renorm", "renorm_", "renorm.out"), renorm),
}
