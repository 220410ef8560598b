"""One call of an operator as a planner sees it: arguments and results as host tensors over the device's own memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

_HOST = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the stand-in has answered: its results have their final sizes, strides and dtypes, and no values yet.

    Tensors are *host aliases*: tensors of the CPU in the very memory of the mps tensor, with its sizes, strides, offset
    and dtype. So a planner may take views (`transpose`, `view`, `as_strided`) freely: no operator of the device is
    called, nothing is counted, nothing recurs. A number that stands for a tensor (`x + 2`) is the Python number.

    Attributes:
        overload: the name without "aten::", e.g. "add.Tensor" or "exp".
        arguments: every argument of the schema by its name, defaults filled in.
        results: the tensors that the call writes: those it returns, then arguments that it writes besides.
        on_host: names of the arguments that are tensors of the CPU to the caller too: scalars, indices.
    """

    overload: str
    arguments: Mapping[str, Any]
    results: tuple[Tensor, ...]
    on_host: frozenset[str] = field(default=frozenset())

    def __getitem__(self, name: str) -> Any:
        """The argument called `name` in the schema."""
        return self.arguments[name]

    @property
    def result(self) -> Tensor:
        """The first of the results, which most operators have alone."""
        return self.results[0]


def host_alias(tensor: Tensor) -> Tensor:
    """A tensor of the host in the memory of an mps tensor, which must outlive it; a tensor of the host is its own.

    Lazy conjugation and negation are kept as flags: the memory holds the values without them.
    """
    if tensor.device.type != "mps":
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
