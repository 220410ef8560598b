"""Chooses the kernel of each operator on the simulated device: by the coverage profile, with exceptions."""

from __future__ import annotations

from dataclasses import dataclass

from .coverage_profile import CoverageProfile

_STUB = "composite, but asks a DispatchStub for mps, which a torch built without mps does not know"
_MEMORY = "tensors cannot be created, viewed, filled or read without it"
_RENAMED = "older releases had it under another name"

# Native in every profile: overload -> reason.
ALWAYS_NATIVE: dict[str, str] = {
    "copy_": _STUB,
    "conj_physical_": _STUB,
    "as_strided": _MEMORY,
    "view": _MEMORY,
    "_reshape_alias": _MEMORY,
    "resize_": _MEMORY,
    "set_": _MEMORY,
    "set_.source_Storage": _MEMORY,
    "set_.source_Storage_storage_offset": _MEMORY,
    "set_.source_Tensor": _MEMORY,
    "fill_.Scalar": _MEMORY,
    "fill_.Tensor": _MEMORY,
    "zero_": _MEMORY,
    "_local_scalar_dense": _MEMORY,
    "_mps_convolution": _RENAMED,
    "mps_convolution_backward": _RENAMED,
    "_mps_convolution_transpose": _RENAMED,
    "mps_convolution_transpose_backward": _RENAMED,
    "linear": _RENAMED,
    "linear_backward": _RENAMED,
    "max_pool2d": _RENAMED,
    "max_pool2d_backward": _RENAMED,
    "_scaled_dot_product_attention_math_for_mps": "attention ends there (csrc/composites.cpp), older ones elsewhere",
}

# Composite even if the profile lists it: overload -> reason.
NEVER_NATIVE: dict[str, str] = {"_fused_rms_norm": "its backward has no kernel, neither on mps nor on the CPU"}

# Always raises (csrc/fallback.cpp), on every Mac too: not a kernel.
REFUSING = frozenset({"_slow_conv2d_forward"})

# Implemented in C++ (csrc/factories.cpp), native in every profile.
IMPLEMENTED_IN_CPP = frozenset({"empty.memory_format", "empty_strided", "_copy_from", "_copy_from_and_resize"})


@dataclass(frozen=True)
class KernelPlan:
    """The aten overloads to register with each kind of kernel, sorted; all exist in the running torch."""

    native: list[str]
    sparse: list[str]
    always_fallback: list[str]


def plan(profile: CoverageProfile) -> KernelPlan:
    """The kernels for `profile` in the running torch.

    A profile of another release may name overloads that this torch lacks; they are left out. It may also name one that
    is composite in this torch. A kernel would break its gradient, so it stays composite.
    """
    overloads = _existing_overloads()
    native = (profile.native | set(ALWAYS_NATIVE)) - set(NEVER_NATIVE) - IMPLEMENTED_IN_CPP
    return KernelPlan(
        native=sorted(name for name in native & overloads if not _is_composed(name)),
        sparse=sorted(profile.sparse & overloads),
        always_fallback=sorted((profile.always_fallback - native) & overloads),
    )


def _existing_overloads() -> set[str]:
    import torch

    names: list[str] = torch._C._dispatch_get_all_op_names()
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def _is_composed(overload: str) -> bool:
    """Whether the overload is composite in the running torch and has no gradient formula."""
    import torch

    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    name = f"aten::{overload}"
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "Autograd")
