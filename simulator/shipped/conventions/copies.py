"""Copies between tensors of the device: of bytes, with a different layout or dtype, conjugated, negated.

The host code is `copy_kernel_mps` and `copy_cast_kernel_mps` of aten/src/ATen/native/mps/operations/Copy.mm (main, late
2026). A copy of unchanged bytes is counted as neutral, because it is not evidence about values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import BlitCopy, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, in_plane
from .metal_types import as_bytes
from .unary_kernels import unary

_BYTES_PER_THREAD = 16

PARALLEL_COPY_FROM = 131072
"""Elements from which on a contiguous copy that converts takes four elements a thread."""


def copied(kernels: ReleaseKernels, target: Tensor, source: Tensor) -> Step:
    """The step that copies `source`, expanded to the target's sizes, into `target`.

    Raises:
        Declined: the release has no kernel for it.
    """
    functor = _functor(target, source)
    target, source = _plain(target), _plain(source.expand_as(target))
    if functor == "copy_identity" and target.dtype == source.dtype:
        if _in_one_format(target, source):
            return _bytes(kernels, target, source)
        if runs := _inner_runs(kernels, target, source):
            return runs
    return unary(kernels, functor, target, source, None, PARALLEL_COPY_FROM)


def copies(kernels: ReleaseKernels, target: Tensor, source: Tensor) -> list[Step]:
    """The steps of `copy_` between tensors of one dtype and device, for operators that call it themselves.

    If neither tensor is contiguous, 2.13.0 copies the source to contiguous memory first, which takes two kernels.
    Raises Declined as `copied` does.
    """
    source = source.expand_as(target)
    strided = not target.is_contiguous() and not source.is_contiguous() and not _in_one_format(target, source)
    if not strided or "contiguous_byte_copy" in kernels or target.dtype != source.dtype or not target.numel():
        return [copied(kernels, target, source)]
    in_order = torch.empty(target.shape, dtype=source.dtype, device="cpu")
    return [copied(kernels, in_order, source), copied(kernels, target, in_order)]


def _moves_bytes(target: Tensor, source: Any, *_: Any) -> bool:
    """Whether a copy moves bytes between host and device; to the device, the host converts them first."""
    if not isinstance(source, Tensor) or (target if source.is_cpu else source)._is_zerotensor():
        return False
    to_host = target.is_cpu and target.dtype == source.dtype and _functor(target, source) == "copy_identity"
    return source.is_cpu or to_host


def copy(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`copy_` between tensors of the device. Declines copies to the host that convert."""
    if "self" in call.on_host:
        raise Declined("a copy to the host that converts")
    return copies(kernels, call["self"], call["src"])


# The stand-in makes these calls as a Mac does: they are not planned.
copy.neutral_where = _moves_bytes  # type: ignore[attr-defined]


def conj_physical(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`conj_physical`, which is a conjugating copy."""
    return [unary(kernels, "copy_conj", call.result, call["self"])]


def _functor(target: Tensor, source: Tensor) -> str:
    conjugate = source.is_conj() != target.is_conj()
    negate = source.is_neg() != target.is_neg()
    if conjugate and negate and source.is_complex():
        return "copy_conj_neg"
    return "copy_neg" if negate else "copy_conj" if conjugate else "copy_identity"


def _plain(tensor: Tensor) -> Tensor:
    """The tensor's memory without the lazy flags for conjugation and negation."""
    if not tensor.is_conj() and not tensor.is_neg():
        return tensor
    plain = torch.empty(0, dtype=tensor.dtype, device="cpu")
    return plain.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _in_one_format(target: Tensor, source: Tensor) -> bool:
    """Whether both are contiguous in the memory format that torch suggests for the target."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if target.is_contiguous():
        return source.is_contiguous()
    suggested = formats.get(target.dim(), torch.contiguous_format)
    return target.is_contiguous(memory_format=suggested) and source.is_contiguous(memory_format=suggested)


def _bytes(kernels: ReleaseKernels, target: Tensor, source: Tensor) -> Step:
    name = "contiguous_byte_copy"
    if name not in kernels:
        return BlitCopy(source, target)
    count = target.numel() * target.element_size()
    arguments = {"out": as_bytes(target), "in": as_bytes(source), "chunk_bytes": count, "base": 0}
    return KernelLaunch(name, arguments, *in_line(-(-count // _BYTES_PER_THREAD)))


def _inner_runs(kernels: ReleaseKernels, target: Tensor, source: Tensor) -> Step | None:
    name = "inner_contiguous_copy"
    walk = geometry(target, source)
    if name not in kernels or not walk.prefers_inner_contiguous:
        return None
    run = walk.shape[0] * target.element_size()
    arguments = {
        "output": as_bytes(target),
        "input": as_bytes(source),
        "outer_sizes": list(walk.shape[1:]),
        "input_outer_strides": list(walk.strides[1][1:]),
        "output_outer_strides": list(walk.strides[0][1:]),
        "ndim_outer_inner_bytes": [len(walk.shape) - 1, run],
    }
    return KernelLaunch(name, arguments, *in_plane(-(-run // _BYTES_PER_THREAD), walk.outer))


PLANNERS: dict[str, Planner] = {
    "copy_": copy,
    "conj_physical": conj_physical,
    "conj_physical_": conj_physical,
    "conj_physical.out": conj_physical,
}
