"""Copies a case's inputs to another device, and keeps everything that an operator can observe.

That includes strides, storage offsets, conjugate and negative bits, shared storages (one argument is a view of
another), and the identity of an argument given twice. A copy is an autograd leaf if the original is one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from ..model.nested import leaves, map_leaves

WIDER: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


Inputs = tuple[tuple[Any, ...], dict[str, Any]]


def move(args: tuple[Any, ...], kwargs: dict[str, Any], device: str, on_host: frozenset[int] = frozenset()) -> Inputs:
    """Copy the inputs to `device`; a keyword `device`, torch.device objects and generators are replaced as well.

    The positional arguments in `on_host` stay on the CPU, because the operator requires them there.
    """
    transfer = _Transfer(torch.device(device), _shared_storages((args, kwargs)))
    moved_args = tuple(arg if i in on_host else map_leaves(transfer.leaf, arg) for i, arg in enumerate(args))
    moved_kwargs = map_leaves(transfer.leaf, kwargs)
    if isinstance(kwargs.get("device"), str):
        moved_kwargs["device"] = device
    return moved_args, moved_kwargs


def _shared_storages(tree: Any) -> frozenset[int]:
    """The storages that more than one tensor of the tree uses."""
    tensors = {id(t): t for t in leaves(tree) if isinstance(t, Tensor) and t.layout is torch.strided}
    if len(tensors) < 2:
        return frozenset()
    counts = Counter(t.untyped_storage()._cdata for t in tensors.values())
    return frozenset(storage for storage, count in counts.items() if count > 1)


class _Transfer:
    """Copies the leaves of a tree, each storage and each tensor once."""

    def __init__(self, device: torch.device, shared: frozenset[int]) -> None:
        self._device = device
        self._shared = shared
        self._storages: dict[int, Tensor] = {}
        self._tensors: dict[int, Tensor] = {}

    def leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            copy = self._tensors.get(id(leaf))
            if copy is None:
                copy = self._tensors[id(leaf)] = self._tensor(leaf)
            return copy
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            return self._device
        if isinstance(leaf, torch.Generator):
            return torch.Generator(self._device).manual_seed(leaf.initial_seed())
        if isinstance(leaf, torch.UntypedStorage):
            return _bytes_of(leaf).to(self._device, copy=True).untyped_storage()
        if isinstance(leaf, slice):
            return slice(self.leaf(leaf.start), self.leaf(leaf.stop), self.leaf(leaf.step))
        return leaf

    def _tensor(self, tensor: Tensor) -> Tensor:
        plain = tensor.detach()
        if plain.layout is not torch.strided or self._owns_its_storage(plain):
            copy = plain.to(self._device, copy=True)
        else:
            copy = self._view_of_copied_storage(plain)
        return copy.requires_grad_() if tensor.requires_grad else copy

    def _owns_its_storage(self, tensor: Tensor) -> bool:
        """Whether the tensor is contiguous and fills a separate storage, so that `to` copies all of it."""
        storage = tensor.untyped_storage()
        return (
            tensor.is_contiguous()
            and storage.nbytes() == tensor.numel() * tensor.element_size()
            and storage._cdata not in self._shared
            and not tensor.is_conj()
            and not tensor.is_neg()
        )

    def _view_of_copied_storage(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = _bytes_of(storage).to(self._device, copy=True)
        copied = self._storages[storage._cdata].untyped_storage()
        view = torch.empty(0, dtype=tensor.dtype, device=self._device)
        view.set_(copied, tensor.storage_offset(), tensor.size(), tensor.stride())
        if tensor.is_conj():
            view = torch._conj(view)
        if tensor.is_neg():
            view = torch._neg_view(view)
        return view


def _bytes_of(storage: torch.UntypedStorage) -> Tensor:
    """A uint8 tensor of the whole storage, on its device."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def widened(tree: Any) -> Any:
    """The tree on the CPU with floating tensors and dtypes in float64, complex ones in complex128."""
    copies: dict[int, Tensor] = {}

    def widen(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return WIDER.get(leaf, leaf)
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in copies:
            copy = leaf.detach().to(WIDER.get(leaf.dtype, leaf.dtype), copy=True)
            copies[id(leaf)] = copy.requires_grad_() if leaf.requires_grad else copy
        return copies[id(leaf)]

    return map_leaves(widen, tree)


def differentiable_leaves(tree: Any) -> list[Tensor]:
    """The tensors of the tree that require a gradient, each once, in the tree's order."""
    by_identity: dict[int, Tensor] = {}
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor) and leaf.requires_grad:
            by_identity.setdefault(id(leaf), leaf)
    return list(by_identity.values())
