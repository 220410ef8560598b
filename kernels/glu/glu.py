"""The forward-mode derivatives of the gated linear unit and of its backward; torch has the unit for mps."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from ..runtime.layout import broadcast, layout_of
from ..runtime.operands import require_device, require_supported, wrap_dim
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_VECTOR_BYTES = 16


def glu_jvp(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> torch.Tensor:
    """`glu_jvp`: the tangent of `glu`, the unit of `x`, for the tangent `dx` of `x`."""
    dim = _wrapped(dim, x)
    half = glu.shape[dim]
    b = x.narrow(dim, half, half)
    da, db = _halves(dx, dim, half)
    require_device(glu, {"x": x, "dx": dx}, "glu_jvp")
    for other in (x, dx):
        if other.dtype != glu.dtype:
            raise RuntimeError(f"Found dtype {other.dtype} but expected {glu.dtype}")
    require_supported(glu, "glu_jvp")
    shape = broadcast(glu.shape, b.shape, da.shape)
    out = torch.empty_like(glu) if glu.shape == shape else glu.new_empty(shape)
    _launch("glu_jvp", [out], [glu, b, da, db], has_wide_form=True)
    return out


def glu_backward_jvp(
    grad_x: torch.Tensor,
    grad_glu: torch.Tensor,
    x: torch.Tensor,
    dgrad_glu: torch.Tensor,
    dx: torch.Tensor,
    dim: int,
) -> torch.Tensor:
    """`glu_backward_jvp`: the tangent of the gradient `grad_x` for the tangents `dgrad_glu` and `dx`.

    Only the linear half of `grad_x` is read, as on the CPU. Integers become floats. Bools in `x` and `dx`
    are refused.
    """
    if torch.bool in (x.dtype, dx.dtype):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    dim = _wrapped(dim, x)
    half = grad_glu.shape[dim]
    (a, b), (da, db) = _halves(x, dim, half), _halves(dx, dim, half)
    linear = _halves(grad_x, dim, half)[0]
    require_device(x, {"grad_x": grad_x, "grad_glu": grad_glu, "dgrad_glu": dgrad_glu, "dx": dx}, "glu_backward_jvp")
    dtypes = (grad_x.dtype, x.dtype, dgrad_glu.dtype, dx.dtype)
    dtype = x.dtype if len(set(dtypes)) == 1 else functools.reduce(torch.promote_types, dtypes)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.get_default_dtype()
    if dtype not in METAL_TYPES:
        raise NotImplementedError(f"glu_backward_jvp is not implemented for {dtype} on mps")
    shape = list(broadcast(a.shape, linear.shape, dgrad_glu.shape, da.shape))
    width, shape[dim] = shape[dim], 2 * shape[dim]
    out = torch.empty(shape, dtype=dtype, device=x.device)
    inputs = [part if part.dtype == dtype else part.to(dtype) for part in (linear, a, b, dgrad_glu, da, db)]
    _launch("glu_backward_jvp", _halves(out, dim, width), inputs)
    return out


def _wrapped(dim: int, x: torch.Tensor) -> int:
    if x.dim() == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return wrap_dim(dim, x.dim())


def _halves(x: torch.Tensor, dim: int, half: int) -> tuple[torch.Tensor, ...]:
    """The linear part and the gate."""
    if half and x.shape[dim] == 2 * half:
        return x.split(half, dim)  # type: ignore[no-any-return, no-untyped-call]
    return x.narrow(dim, 0, half), x.narrow(dim, half, half)


def _launch(
    name: str, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], has_wide_form: bool = False
) -> None:
    if outputs[0].numel() == 0:
        return
    shape = outputs[0].shape
    layout = layout_of([*outputs, *(x if x.shape == shape else x.expand(shape) for x in inputs)])
    lanes = _VECTOR_BYTES // outputs[0].element_size()
    vectors = layout.in_vectors(lanes) if has_wide_form else None
    if vectors is not None and all(x.storage_offset() % lanes == 0 for x in (*outputs, *inputs)):
        name, layout = f"{name}_wide", vectors
    kernel = _shader.kernel(
        f"{name}{'' if layout.fits_32_bits else '64'}_{METAL_TYPES[outputs[0].dtype]}", outputs[0].device
    )
    layout.launch(kernel, *outputs, *inputs)


def fake_glu_jvp(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> torch.Tensor:
    """The shape of the result of `glu_jvp`, for fake tensors."""
    return torch.empty_like(glu)


def fake_glu_backward_jvp(
    grad_x: torch.Tensor, grad_glu: torch.Tensor, x: torch.Tensor, *arguments: object
) -> torch.Tensor:
    """The shape of the result of `glu_backward_jvp`, for fake tensors."""
    return x.new_empty(x.shape)


KERNELS = (
    ("aten::glu_jvp", glu_jvp),
    ("aten::glu_backward_jvp", glu_backward_jvp),
)
FAKES = (
    ("aten::glu_jvp", fake_glu_jvp),
    ("aten::glu_backward_jvp", fake_glu_backward_jvp),
)
