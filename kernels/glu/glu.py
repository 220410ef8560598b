"""The forward-mode derivatives of the gated linear unit and of its backward; torch has the unit for mps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..runtime.layout import Layout, broadcast, layout_over
from ..runtime.operands import FLOATING, require_device, require_supported, wrap_dim
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_VECTOR_BYTES = 16
_BACKWARD_DTYPES = FLOATING | {torch.complex64}


class _Plan(NamedTuple):
    """A launch for operands whose shapes fit: the kernels for vectors that are aligned, and for all else."""

    shape: tuple[int, ...]  # of the result
    distances: list[int]  # in elements, from the linear part to the gate of each operand that has both
    lanes: int  # of a vector; 0 if there are none
    wide: tuple[str, Layout]
    narrow: tuple[str, Layout]


def glu_jvp(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> torch.Tensor:
    """`glu_jvp`: the tangent of `glu`, the unit of `x`, for the tangent `dx` of `x`."""
    plan = planned(_plan, (glu, x, dx), dim)
    if plan is None:
        dim, part = _wrapped(dim, x), tuple(glu.shape)
        halves, tangents = _halves(x, part, dim), _halves(dx, part, dim)
        shape = broadcast(part, halves[0].shape, tangents[0].shape)
        return glu_jvp(glu.expand(shape).contiguous(), _whole(halves, shape, dim), _whole(tangents, shape, dim), dim)
    out = torch.empty_like(glu)
    if out.numel():
        places = int(x.storage_offset()) | int(dx.storage_offset()) | int(glu.storage_offset())
        name, layout = plan.wide if plan.lanes and not places % plan.lanes else plan.narrow
        layout.launch(_shader.kernel(name, out.device), out, glu, x, dx, plan.distances)
    return out


def _plan(glu: torch.Tensor, x: torch.Tensor, dx: torch.Tensor, dim: int) -> _Plan | None:
    """The plan of a call whose shapes fit, after its checks; None if they may broadcast."""
    _check_dtypes(glu, x, dx)
    dim, shape = _wrapped(dim, x), tuple(glu.shape)
    whole = _doubled(shape, dim)
    if x.shape != whole or dx.shape != whole:
        return None
    distances = [shape[dim] * x.stride(dim), shape[dim] * dx.stride(dim)]
    out, lanes = torch.empty_like(glu, device="meta"), _VECTOR_BYTES // glu.element_size()
    layout = layout_over(shape, tuple([y.stride() for y in (out, glu, x, dx)]))
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
    plan = planned(_plan_of_backward, (grad_x, grad_glu, x, dgrad_glu, dx), dim)
    if plan is None:
        return _backward_of_any(grad_x, grad_glu, x, dgrad_glu, dx, _wrapped(dim, x))
    out = torch.empty(plan.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        name, layout = plan.narrow
        layout.launch(_shader.kernel(name, out.device), out, grad_x, x, dgrad_glu, dx, plan.distances)
    return out


def _plan_of_backward(
    grad_x: torch.Tensor, grad_glu: torch.Tensor, x: torch.Tensor, dgrad_glu: torch.Tensor, dx: torch.Tensor, dim: int
) -> _Plan | None:
    """The plan of a call whose shapes and dtypes fit, after its checks; None if they may broadcast or be cast."""
    if torch.bool in (x.dtype, dx.dtype):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    dim = _wrapped(dim, x)
    require_device(x, {"grad_x": grad_x, "grad_glu": grad_glu, "dgrad_glu": dgrad_glu, "dx": dx}, "glu_backward_jvp")
    part, dtype = _part_of(grad_glu, x, dim), x.dtype
    whole = _doubled(part, dim)
    fits = x.shape == grad_x.shape == dx.shape == whole and dgrad_glu.shape == part
    if not (fits and dtype == grad_x.dtype == dgrad_glu.dtype == dx.dtype and dtype in _BACKWARD_DTYPES):
        return None
    out = torch.empty(whole, device="meta")
    layout = layout_over(part, tuple([y.stride() for y in (out, grad_x, x, dgrad_glu, dx)]))
    distances = [part[dim] * y.stride(dim) for y in (out, x, dx)]
    launch = f"glu_backward_jvp{_suffix(layout, dtype)}", layout
    return _Plan(whole, distances, 0, launch, launch)


def _backward_of_any(
    grad_x: torch.Tensor, grad_glu: torch.Tensor, x: torch.Tensor, dgrad_glu: torch.Tensor, dx: torch.Tensor, dim: int
) -> torch.Tensor:
    """The same for operands that broadcast or have several dtypes, from copies that fit."""
    part = _part_of(grad_glu, x, dim)
    halves, tangents, linear = _halves(x, part, dim), _halves(dx, part, dim), grad_x.narrow(dim, 0, part[dim])
    dtype = functools.reduce(torch.promote_types, (grad_x.dtype, dgrad_glu.dtype, dx.dtype), x.dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.get_default_dtype()
    if dtype not in _BACKWARD_DTYPES:
        raise NotImplementedError(f"glu_backward_jvp is not implemented for {dtype} on mps")
    shape = broadcast(halves[0].shape, linear.shape, dgrad_glu.shape, tangents[0].shape)
    dgrad_glu = dgrad_glu.expand(shape).to(dtype)
    wholes = [_whole(pair, shape, dim).to(dtype) for pair in ((linear, linear), halves, tangents)]
    return glu_backward_jvp(wholes[0], dgrad_glu, wholes[1], dgrad_glu, wholes[2], dim)


def _part_of(grad_glu: torch.Tensor, x: torch.Tensor, dim: int) -> tuple[int, ...]:
    """The shape of a half of `x`, which has the size of `grad_glu` along `dim`."""
    return tuple([grad_glu.shape[d] if d == dim else size for d, size in enumerate(x.shape)])


def _wrapped(dim: int, x: torch.Tensor) -> int:
    if x.dim() == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return wrap_dim(dim, x.dim())


def _doubled(part: Sequence[int], dim: int) -> tuple[int, ...]:
    """The shape of a tensor whose halves along `dim` have the shape `part`."""
    whole = list(part)
    whole[dim] *= 2
    return tuple(whole)


def _halves(x: torch.Tensor, part: Sequence[int], dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The linear part and the gate."""
    return x.narrow(dim, 0, part[dim]), x.narrow(dim, part[dim], part[dim])


def _whole(halves: Sequence[torch.Tensor], shape: Sequence[int], dim: int) -> torch.Tensor:
    """A copy of both halves, each broadcast to `shape`."""
    return torch.cat([half.expand(shape) for half in halves], dim)


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
