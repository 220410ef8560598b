"""The forward-mode derivatives of the gated linear unit and of its backward; torch has the unit for mps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..runtime.layout import Layout, broadcast, layout_over
from ..runtime.operands import require_device, require_supported, wrap_dim
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_VECTOR_BYTES = 16


def glu_jvp(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> torch.Tensor:
    """`glu_jvp`: the tangent of `glu`, the unit of `x`, for the tangent `dx` of `x`."""
    plan = planned(_plan, (glu, x, dx), dim)
    if plan is None:
        dim, shape = _wrapped(dim, x), tuple(glu.shape)
        b, da, db = (_gate(x, shape, dim, False), _linear(dx, shape, dim, False), _gate(dx, shape, dim, False))
        _check_dtypes(glu, x, dx)
        shape = broadcast(shape, b.shape, da.shape)
        out = glu.new_empty(shape)
        _launch("glu_jvp", [out], [x.expand(shape) for x in (glu, b, da, db)], shape)
        return out
    place, tangent_place = int(x.storage_offset()), int(dx.storage_offset())
    b = x.as_strided(plan.shape, x.stride(), place + plan.distances[0])
    db = dx.as_strided(plan.shape, dx.stride(), tangent_place + plan.distances[1])
    out = torch.empty_like(glu)
    if out.numel():
        are_aligned = plan.lanes and not (place | tangent_place | int(glu.storage_offset())) % plan.lanes
        name, layout = plan.wide if are_aligned else plan.narrow
        layout.launch(_shader.kernel(name, out.device), out, glu, b, dx, db)
    return out


class _Plan(NamedTuple):
    """Where the gates begin behind `x` and `dx`, and the kernels; lanes are 0 where elements do not come in vectors."""

    shape: tuple[int, ...]
    distances: tuple[int, int]
    lanes: int
    wide: tuple[str, Layout]
    narrow: tuple[str, Layout]


def _plan(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> _Plan | None:
    """The plan of a call whose shapes fit, after its checks; None if they may broadcast."""
    dim, shape = _wrapped(dim, x), tuple(glu.shape)
    whole = _doubled(shape, dim)
    if x.shape != whole or dx.shape != whole:
        return None
    _check_dtypes(glu, x, dx)
    distances = shape[dim] * x.stride(dim), shape[dim] * dx.stride(dim)
    out, lanes = torch.empty_like(glu, device="meta"), _VECTOR_BYTES // glu.element_size()
    layout = layout_over(shape, tuple([y.stride() for y in (out, glu, x, dx, dx)]))
    narrow = f"glu_jvp{_suffix(layout, glu.dtype)}", layout
    vectors = None if distances[0] % lanes or distances[1] % lanes else layout.in_vectors(lanes)
    if vectors is None:
        return _Plan(shape, distances, 0, narrow, narrow)
    return _Plan(shape, distances, lanes, (f"glu_jvp_wide{_suffix(vectors, glu.dtype)}", vectors), narrow)


def _check_dtypes(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor) -> None:
    require_device(glu, {"x": x, "dx": dx}, "glu_jvp")
    for other in (x, dx):
        if other.dtype != glu.dtype:
            raise RuntimeError(f"Found dtype {other.dtype} but expected {glu.dtype}")
    require_supported(glu, "glu_jvp")


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
    shape: tuple[int, ...] = tuple([grad_glu.shape[d] if d == dim else size for d, size in enumerate(x.shape)])
    whole = _doubled(shape, dim)
    fits = x.shape == whole and grad_x.shape == whole and dx.shape == whole and dgrad_glu.shape == shape
    a, b = _linear(x, shape, dim, fits), _gate(x, shape, dim, fits)
    da, db = _linear(dx, shape, dim, fits), _gate(dx, shape, dim, fits)
    linear = _linear(grad_x, shape, dim, fits)
    require_device(x, {"grad_x": grad_x, "grad_glu": grad_glu, "dgrad_glu": dgrad_glu, "dx": dx}, "glu_backward_jvp")
    dtype = x.dtype
    if not dtype == grad_x.dtype == dgrad_glu.dtype == dx.dtype:
        dtype = functools.reduce(torch.promote_types, (grad_x.dtype, dgrad_glu.dtype, dx.dtype), dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.get_default_dtype()
    if dtype not in METAL_TYPES:
        raise NotImplementedError(f"glu_backward_jvp is not implemented for {dtype} on mps")
    inputs = [linear, a, b, dgrad_glu, da, db]
    if not fits:
        shape = broadcast(a.shape, linear.shape, dgrad_glu.shape, da.shape)
        inputs = [x.expand(shape) for x in inputs]
    out = torch.empty(_doubled(shape, dim), dtype=dtype, device=x.device)
    inputs = [x if x.dtype == dtype else x.to(dtype) for x in inputs]
    _launch("glu_backward_jvp", [out, _gate(out, shape, dim, fits=True)], inputs, shape)
    return out


def _wrapped(dim: int, x: torch.Tensor) -> int:
    if x.dim() == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return wrap_dim(dim, x.dim())


def _doubled(part: Sequence[int], dim: int) -> tuple[int, ...]:
    """The shape of a tensor whose halves along `dim` have the shape `part`."""
    whole = list(part)
    whole[dim] *= 2
    return tuple(whole)


def _linear(x: torch.Tensor, part: Sequence[int], dim: int, fits: bool) -> torch.Tensor:
    """The linear part; if the shapes fit it is where `x` begins, so no view of it is made."""
    return x if fits else x.narrow(dim, 0, part[dim])


def _gate(x: torch.Tensor, part: tuple[int, ...], dim: int, fits: bool) -> torch.Tensor:
    """The gate; `as_strided` takes two thirds of the time of `narrow`."""
    if not fits:
        return x.narrow(dim, part[dim], part[dim])
    strides = x.stride()
    return x.as_strided(part, strides, x.storage_offset() + part[dim] * strides[dim])


def _launch(name: str, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], shape: tuple[int, ...]) -> None:
    """Run a kernel over the first elements of all operands, as many as `shape` has."""
    out, operands = outputs[0], (*outputs, *inputs)
    if out.numel() == 0:
        return
    layout = layout_over(shape, tuple([x.stride() for x in operands]))
    layout.launch(_shader.kernel(f"{name}{_suffix(layout, out.dtype)}", out.device), *operands)


def _suffix(layout: Layout, dtype: torch.dtype) -> str:
    return f"{'' if layout.fits_32_bits else '64'}_{METAL_TYPES[dtype]}"


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
