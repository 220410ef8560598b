"""Queries the dispatcher about an overload on mps: whether it exists, and whether its kernel is a real one."""

from __future__ import annotations

import re

import torch

# Torch registers a fallback kernel for these overloads (MPSFallback.mm), so they look native.
_ALWAYS_FALL_BACK = frozenset(
    {"aten::_slow_conv2d_forward", "aten::embedding_renorm_", "aten::linalg_svd", "aten::linalg_svd.U"}
)

_META_LINE = re.compile(r"^Meta: (?P<where>.*)$", re.MULTILINE)
_MPS_LINES = {key: re.compile(rf"^{key}: (?P<where>.*)$", re.MULTILINE) for key in ("MPS", "SparseMPS")}


def exists(overload: str) -> bool:
    """Whether the running torch has the overload, `aten::mode.values`."""
    return torch._C._dispatch_has_kernel(overload)


def has_mps_kernel(overload: str, key: str = "MPS") -> bool:
    """Whether a kernel for mps is registered that is not a CPU fallback; `key`: the dispatch key."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(overload, key):
        return False
    return overload not in _ALWAYS_FALL_BACK or not _is_fallback(overload)


def is_composite(overload: str) -> bool:
    """Whether no kernel for mps is registered, so that torch's composite kernel is used."""
    return not torch._C._dispatch_has_kernel_for_dispatch_key(overload, "MPS")


def is_registered_in(file: str, overload: str, key: str = "MPS") -> bool:
    """Whether the active kernel on mps was registered by a library of that Python file."""
    line = _MPS_LINES[key].search(torch._C._dispatch_dump(overload))
    return line is not None and file in line["where"]


def lacks_fake(overload: str) -> bool:
    """Whether the running torch has the overload without a kernel for meta tensors."""
    return exists(overload) and not torch._C._dispatch_has_kernel_for_dispatch_key(overload, "Meta")


def fake_needs_concrete_sizes(overload: str) -> bool:
    """Whether the overload's meta kernel is in C++, which accepts only concrete sizes."""
    line = _META_LINE.search(torch._C._dispatch_dump(overload)) if exists(overload) else None
    return line is not None and "RegisterMeta" in line["where"]


def mps_is_available() -> bool:
    """Whether this process can compute on mps."""
    return torch.backends.mps.is_available()


def _is_fallback(overload: str) -> bool:
    """Whether the kernel is the CPU fallback: it is boxed, and native kernels are registered unboxed."""
    line = _MPS_LINES["MPS"].search(torch._C._dispatch_dump(overload))
    return line is not None and ("MPSFallback" in line["where"] or line["where"].endswith("[ boxed ]"))
