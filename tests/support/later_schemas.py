"""Schemas of operators that came after the oldest torch that is developed on, as their release declares them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# From native_functions.yaml of torch 2.15.0.
LATER_SCHEMAS: dict[str, str] = {
    "aten::_philox_key_split": "(Tensor key, int num_splits) -> Tensor",
    "aten::_philox_key_fold_in": "(Tensor key, int data) -> Tensor",
    "aten::_philox_key_fold_in.Tensor": "(Tensor key, Tensor data) -> Tensor",
    "aten::_philox_normal_": "(Tensor(a!) self, Tensor key, float mean=0, float std=1) -> Tensor(a!)",
    "aten::_philox_uniform_": "(Tensor(a!) self, Tensor key, float low=0, float high=1) -> Tensor(a!)",
    "aten::_philox_randint_": "(Tensor(a!) self, Tensor key, int? low=None, int? high=None) -> Tensor(a!)",
    "aten::linalg_matrix_sqrth": "(Tensor self) -> Tensor",
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
    library = torch.library.Library("aten", "FRAGMENT")
    for overload, signature in LATER_SCHEMAS.items():
        if overload.split(".")[0] in operators and not torch._C._dispatch_has_kernel(overload):
            library.define(overload.removeprefix("aten::") + signature)
    try:
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
