"""Schemas of operators that came after the oldest torch that is developed on, or that torchvision declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_DEFORMABLE = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, int pad_h, "
    "int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask"
)
# From native_functions.yaml of torch 2.15.0, and from torchvision 0.28.0.
LATER_SCHEMAS: dict[str, str] = {
    "aten::_philox_key_split": "(Tensor key, int num_splits) -> Tensor",
    "aten::_philox_key_fold_in": "(Tensor key, int data) -> Tensor",
    "aten::_philox_key_fold_in.Tensor": "(Tensor key, Tensor data) -> Tensor",
    "aten::_philox_normal_": "(Tensor(a!) self, Tensor key, float mean=0, float std=1) -> Tensor(a!)",
    "aten::_philox_uniform_": "(Tensor(a!) self, Tensor key, float low=0, float high=1) -> Tensor(a!)",
    "aten::_philox_randint_": "(Tensor(a!) self, Tensor key, int? low=None, int? high=None) -> Tensor(a!)",
    "aten::linalg_matrix_sqrth": "(Tensor self) -> Tensor",
    "torchvision::deform_conv2d": f"({_DEFORMABLE}) -> Tensor",
    "torchvision::_deform_conv2d_backward": f"(Tensor grad, {_DEFORMABLE}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
}


def schema_of(overload: str) -> torch._C.FunctionSchema:
    """The schema of an overload: the running torch's, or the one that a later release has."""
    if torch._C._dispatch_has_kernel(overload):
        name, _, variant = overload.partition(".")
        return torch._C._get_schema(name, variant)
    return torch._C.parse_schema(overload + LATER_SCHEMAS[overload])


@contextmanager
def declared(*operators: str) -> Iterator[None]:
    """Inside, the running torch has the overloads of these operators, declared as in the later release."""
    libraries = {name: torch.library.Library(name, "FRAGMENT") for name in {name.split("::")[0] for name in operators}}
    for overload, signature in LATER_SCHEMAS.items():
        if overload.split(".")[0] in operators and not torch._C._dispatch_has_kernel(overload):
            library, _, name = overload.partition("::")
            libraries[library].define(name + signature)
    try:
        yield
    finally:
        for fragment in libraries.values():
            fragment._destroy()  # type: ignore[no-untyped-call]
