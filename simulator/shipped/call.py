"""A call of an operator for planners: arguments and results as host tensors over the device's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

_HOST = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Call:
    """A call after the stand-in has run: results have their final sizes, strides and dtypes, but no values yet.

    Tensors are *host aliases*: CPU tensors over the memory of the mps tensor, with its sizes, strides, offset and
    dtype. So a planner may take views (`transpose`, `view`, `as_strided`): no operator of the device is called or
    counted. A Python number instead of a tensor (`x + 2`) stays a number.

    Attributes:
        overload: the name without "aten::", e.g. "add.Tensor" or "exp".
        arguments: every argument of the schema by its name, defaults filled in.
        results: the tensors that the call writes: returned ones, then written arguments.
        on_host: names of the arguments that are CPU tensors: scalars, indices.
    """

    overload: str
    arguments: Mapping[str, Any]
    results: tuple[Tensor, ...]
    on_host: frozenset[str] = field(default=frozenset())

    def __getitem__(self, name: str) -> Any:
        """The argument `name` of the schema."""
        return self.arguments[name]

    @property
    def result(self) -> Tensor:
        """The first result; most operators have one."""
        return self.results[0]


def host_alias(tensor: Tensor) -> Tensor:
    """A host tensor over the memory of an mps tensor, which must outlive it; a host tensor is returned unchanged.

    Lazy conjugation and negation are kept as flags.
    """
    if not tensor.is_mps:
        return tensor
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    memory = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), _HOST, size)
    alias = torch.empty(0, dtype=tensor.dtype, device=_HOST)
    alias.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        alias = torch._conj(alias)
    if tensor.is_neg():
        alias = torch._neg_view(alias)
    return alias
