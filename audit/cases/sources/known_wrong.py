"""The cases of the registry's known-wrong corpus, which users reported: they run before all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ....registry import known_wrong
from ....registry.known_case import KnownCase, SliceInput, TensorInput, TorchInput, TupleInput, View, plain_value
from ....registry.known_wrong import KnownReport
from ...model.case import Case, CaseSource
from ...model.group import GroupKey
from ...model.nested import leaves, map_leaves
from ...model.selection import Samples
from .memory import lacking_memory

SOURCE = "known wrong"
Call = Callable[..., Any]


class KnownWrongSource(CaseSource):
    """One group for each report and dtype; its variant is the number of the issue, "#150967".

    Args:
        large: whether the cases that need very much memory are made, or all others.
    """

    def __init__(self, *, large: bool = False) -> None:
        self.name = f"large {SOURCE}" if large else SOURCE
        self.opt_in = self._large = large

    def groups(self) -> Iterable[GroupKey]:
        """The groups of all such reports."""
        return self._reports

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The cases of one report, at every level of sampling; skipped, and nothing made, without the memory."""
        for report, described in self._reports[replace(key, mode="fallback")]:  # the strict mode repeats the same cases
            title = f"issue #{report.issue}, {report.wrong_class}"
            skipped = lacking_memory(described.memory_gib) if described.memory_gib is not None else ""
            yield Case(torch.abs, title=title, skipped=skipped) if skipped else made(title, described)

    @cached_property
    def _reports(self) -> dict[GroupKey, list[tuple[KnownReport, KnownCase]]]:
        return grouped(self.name, large=self._large)


def grouped(source: str, *, large: bool) -> dict[GroupKey, list[tuple[KnownReport, KnownCase]]]:
    """The corpus by group: either the cases that need very much memory, or the others."""
    by_group: dict[GroupKey, list[tuple[KnownReport, KnownCase]]] = {}
    for report in known_wrong.load().values():
        for case in report.cases:
            if (case.memory_gib is not None) is large:
                operator = report.overload_of(case).removeprefix("aten::").split(".")[0]
                key = GroupKey(source, operator, f"#{report.issue}", case.dtype, "fallback")
                by_group.setdefault(key, []).append((report, case))
    return by_group


def made(title: str, described: KnownCase) -> Case:
    """The case that an entry describes, its inputs drawn from torch's generator."""
    call = resolved(described.call)
    if call is None:
        return Case(abs, title=title, skipped=f"torch {torch.__version__} has no {described.call}")
    args = tuple(argument(value) for value in described.args)
    kwargs = {name: argument(value) for name, value in described.kwargs.items()}
    if described.form == "out":
        outs = tuple(tensor(out) for out in described.out)
        kwargs["out"] = outs if len(outs) > 1 else outs[0]
    on_host = frozenset(i for i, value in enumerate(described.args) if isinstance(value, TensorInput) and value.on_cpu)
    form = {"out": into, "in-place": in_place}.get(described.form)
    return Case(
        form(call) if form else call,
        args,
        kwargs,
        differentiable=described.form == "backward",
        on_host=on_host,
        errors_count=described.refused,
        written="" if form or on_host else described.call,
        title=title,
    )


def resolved(name: str) -> Call | None:
    """The callable with a dotted name in torch; None if this torch has none."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value if callable(value) else None


def argument(value: Any) -> Any:
    """An argument as a call takes it."""
    if isinstance(value, TensorInput):
        return tensor(value)
    if isinstance(value, SliceInput):
        return slice(*value.slice)
    if isinstance(value, TorchInput):
        return getattr(torch, value.torch)
    if isinstance(value, TupleInput):
        return tuple(argument(item) for item in value.tuple)
    return [argument(item) for item in value] if isinstance(value, list) else plain_value(value)


def tensor(described: TensorInput) -> Tensor:
    """The tensor, as a leaf of autograd where its gradient is wanted; its views are part of it."""
    dtype: torch.dtype = getattr(torch, described.dtype)
    made = _from_values(described, dtype) if described.values is not None else _filled(described, dtype)
    for view in described.views:
        made = viewed(made, view)
    return made.detach().requires_grad_() if described.requires_grad else made


def _from_values(described: TensorInput, dtype: torch.dtype) -> Tensor:
    values = torch.tensor(map_leaves(plain_value, described.values), dtype=dtype)
    if described.shape is None:
        return values
    wanted = torch.Size(described.shape)
    repeats = -(-wanted.numel() // max(1, values.numel()))
    return values.flatten().repeat(repeats)[: wanted.numel()].reshape(wanted)


def _filled(described: TensorInput, dtype: torch.dtype) -> Tensor:
    shape = described.shape or ()
    match described.fill or "zeros":
        case "randn":
            return torch.randn(shape, dtype=dtype)
        case "rand":
            return torch.rand(shape, dtype=dtype)
        case "arange":
            return torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
        case "zeros":
            return torch.zeros(shape, dtype=dtype)
        case "ones":
            return torch.ones(shape, dtype=dtype)
        case "integers":
            assert described.below is not None
            return torch.randint(described.below, shape).to(dtype)
        case "permutation":
            return torch.randperm(torch.Size(shape).numel()).reshape(shape).to(dtype)
        case "well conditioned":
            return torch.randn(shape, dtype=dtype) + 2 * shape[-1] * torch.eye(shape[-1], dtype=dtype)
        case number:
            return torch.full(shape, float(number)).to(dtype)


def viewed(base: Tensor, view: View) -> Tensor:
    """One step from a tensor to a view of it."""
    name, value = view.step
    if name in ("transpose", "select", "permute", "expand", "reshape"):
        changed: Tensor = getattr(base, name)(*value)
        return changed
    if name == "slice":
        dim, start, stop, step = value
        return base[(slice(None),) * (dim % base.dim()) + (slice(start, stop, step),)]
    if name == "unsqueeze":
        return base.unsqueeze(value)
    if name == "memory_format":
        return base.contiguous(memory_format=getattr(torch, value))
    if name == "as_strided":
        return base.as_strided(*value)
    return torch.conj(base) if name == "conj" else torch._neg_view(base)


def in_place(operator: Call) -> Call:
    """The call, and all of the storage that its first argument looks into: what it wrote elsewhere shows."""

    def call(target: Tensor, *args: Any, **kwargs: Any) -> Any:
        returned = operator(target, *args, **kwargs)
        device = _device_of((target, args, kwargs))
        return target.to(device, copy=True), returned is target, storage_of(target).to(device, copy=True)

    return call


def into(operator: Call) -> Call:
    """The call with out=, and all of the storages that its outputs look into."""

    def call(*args: Any, out: Any, **kwargs: Any) -> Any:
        operator(*args, out=out, **kwargs)
        outs = [leaf for leaf in leaves(out) if isinstance(leaf, Tensor)]
        return [t.clone() for t in outs], [storage_of(t).clone() for t in outs]

    return call


def storage_of(view: Tensor) -> Tensor:
    """Everything in the storage that a tensor looks into, as a vector of its dtype."""
    storage = view.untyped_storage()
    whole = torch.empty(0, dtype=view.dtype, device=view.device)
    return whole.set_(storage, 0, (storage.nbytes() // view.element_size(),), (1,))


def _device_of(tree: Any) -> torch.device:
    """The device that is not the CPU, where any tensor is on one: a target on the CPU is compared there as well."""
    devices = [leaf.device for leaf in leaves(tree) if isinstance(leaf, Tensor)]
    return next((device for device in devices if device.type != "cpu"), devices[0])
