"""The other ways to call an operator: out=, in place, under autocast, in inference mode.

Each form wraps the call alone, so the CPU and the device go through the same steps and their results are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...judging.transfer import differentiable_leaves
from ...judging.uninitialised_memory import deterministic_algorithms
from ...model.case import Case
from ...model.nested import leaves, map_leaves
from .derived import MAIN_DTYPES, BaseGroup, Factor, in_each_case
from .operand_forms import number_and_tensor, overlapping

GUARD = 37  # elements before and after an out= tensor; odd, so that a vectorised overrun does not end on its border
# OpInfos that claim to take out= by default, although the operator does not.
WITHOUT_OUT = frozenset({"equal", "histogramdd", "_batch_norm_with_update"})
AUTOCAST = {"float16": torch.float16, "bfloat16": torch.bfloat16}

# The CPU's own kernel writes into out= as if it were contiguous: there is nothing to compare with.
STRIDES_OF_OUT_IGNORED = frozenset({"narrow_copy"})
RESIZED = ("empty", "one element too large")
EXACT = "exact"
OUT_KINDS = (EXACT, "transposed", "every other element", *RESIZED)

Call = Callable[..., Any]


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """The case in every form that its OpInfo says the operator has."""
    for called in _forms(group, case):
        yield replace(called, form=called.title)


def _forms(group: BaseGroup, case: Case) -> Iterator[Case]:
    op = group.opinfo
    plain = replace(case, differentiable=False, args=detached(case.args), kwargs=detached(case.kwargs))
    if takes_out(op) and "out" not in case.kwargs and not case.uninitialised:
        for form in map(OutForm, OUT_KINDS):
            if form.title == "out= every other element" and op.name in STRIDES_OF_OUT_IGNORED:
                continue
            yield replace(plain, call=form.of(op.op), title=form.title)
        yield from overlapping(op.op, plain)
        yield replace(plain, call=OutForm("other dtype").of(op.op), title="out= of another dtype", errors_count=True)
    if op.inplace_variant is not None and isinstance(plain.args[0], Tensor):
        yield replace(plain, call=in_place(op.inplace_variant), title="in place", errors_count=True)
    if op.method_variant is not None and isinstance(plain.args[0], Tensor):
        yield replace(plain, call=op.method_variant, title="method")
    yield from number_and_tensor(op.op, op.aten_name, plain)
    yield replace(plain, call=under(torch.inference_mode, op.op), title="inference mode")
    yield replace(case, call=under(torch.no_grad, op.op), differentiable=False, title="no_grad")
    if takes_out(op) and "out" not in case.kwargs and not case.uninitialised:
        into_out = under(torch.no_grad, OutForm(EXACT).of(op.op))
        yield replace(case, call=into_out, differentiable=False, title="no_grad, out=")
    yield replace(
        plain, call=under(deterministic_algorithms, op.op), title="deterministic algorithms", errors_count=True
    )
    # PyTorch promises no strides of gradients and tangents; `process_output` picks outputs, not gradients.
    derived = replace(case, elementwise=False, process_output=lambda output: output)
    if case.differentiable and op.supports_gradgrad:
        yield replace(derived, call=first_derivative(op.op, case.process_output), title="second derivative")
    if case.differentiable and op.supports_forward_ad:
        yield replace(derived, call=tangents(op.op), differentiable=False, title="forward mode")
    if group.key.dtype == "float32":
        for name, dtype in AUTOCAST.items():
            yield replace(case, call=autocast(op.op, dtype), title=f"autocast {name}", rounded_to=dtype)


FORM_FACTOR = Factor("forms", in_each_case(_variations), dtypes=MAIN_DTYPES)


def takes_out(op: Any) -> bool:
    """Whether the operator of an OpInfo can be called with out= from Python; the foreach functions cannot."""
    return op.supports_out and not op.name.startswith("_foreach_") and op.name not in WITHOUT_OUT


def detached(tree: Any) -> Any:
    """The tree without requires_grad: forms of a call that refuse a leaf of autograd are still worth calling."""
    return map_leaves(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, tree)


def copied(tree: Any) -> Any:
    """The tree with copies of its tensors, for calls that write to what they are given."""
    return map_leaves(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, tree)


class OutForm:
    """Calls with out=, into tensors inside a larger storage filled with a sentinel.

    The result holds the outputs, whether the operator returned the given tensors, and the storage around them, so that
    a write outside an output shows as a difference.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.title = f"out= {kind}"

    def of(self, operator: Call) -> Call:
        """The form for one operator."""

        def call(*args: Any, **kwargs: Any) -> Any:
            plain = operator(*args, **kwargs)
            single = isinstance(plain, Tensor)
            outs = [self._place(t) for t in ([plain] if single else plain)]
            storages = [t._base if t._base is not None else t for t in outs]
            returned = operator(*args, **kwargs, out=outs[0] if single else tuple(outs))
            given_back = [returned] if single else outs if returned is None else returned
            same = [a is b for a, b in zip(given_back, outs, strict=True)]
            # A resized output may have left its storage; otherwise what surrounds it must be as it was.
            around = list(map(_storage_around, storages, outs)) if self._kind not in RESIZED else []
            return [out.clone() for out in outs], same, around

        call.__name__ = self.title
        return call

    def _place(self, like: Tensor) -> Tensor:
        if self._kind == "empty":
            return torch.empty(0, dtype=like.dtype, device=like.device)
        dtype = like.dtype
        if self._kind == "other dtype":
            dtype = torch.float32 if dtype is not torch.float32 else torch.int32
        if self._kind == "one element too large":  # gets resized, with a warning
            return guarded(like.numel() + 1, dtype, like.device)[GUARD : GUARD + like.numel() + 1]
        if self._kind == "every other element":
            spread = guarded(2 * like.numel(), dtype, like.device)
            return spread[GUARD : GUARD + 2 * like.numel() : 2].view(like.shape)
        storage = guarded(like.numel(), dtype, like.device)
        inner = storage[GUARD : GUARD + like.numel()]
        if self._kind == "transposed":
            return inner.view(tuple(reversed(like.shape))).permute(tuple(range(like.dim() - 1, -1, -1)))
        return inner.view(like.shape)


def _storage_around(storage: Tensor, out: Tensor) -> Tensor:
    """A copy of a storage with zeros in place of the output, which is compared separately."""
    whole = storage.clone()
    end = out.storage_offset() + sum((size - 1) * step for size, step in zip(out.shape, out.stride(), strict=True))
    if end < whole.numel():  # else it was resized, and has left
        whole.as_strided(out.shape, out.stride(), out.storage_offset()).zero_()
    return whole


def guarded(elements: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A vector of so many elements and a guard on either side, all ones."""
    return torch.full((elements + 2 * GUARD,), 1, dtype=dtype, device=device)


def in_place(operator: Call) -> Call:
    """The in-place variant on a copy of the first argument, placed between guards as in `OutForm`.

    The result holds the tensor, whether the operator returned that tensor, and the guards.
    """

    def call(first: Tensor, *args: Any, **kwargs: Any) -> Any:
        storage = guarded(first.numel(), first.dtype, first.device)
        target = storage[GUARD : GUARD + first.numel()].view(first.shape)
        target.copy_(first)
        returned = operator(target, *args, **kwargs)
        around = [storage[:GUARD], storage[GUARD + first.numel() :]]
        return target.clone(), returned is target, [guard.clone() for guard in around]

    call.__name__ = "in place"
    return call


def under(mode: Callable[[], AbstractContextManager[Any]], operator: Call) -> Call:
    """The call inside a context such as no_grad."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return operator(*args, **kwargs)

    call.__name__ = getattr(mode, "__name__", "context")
    return call


def autocast(operator: Call, dtype: torch.dtype) -> Call:
    """The call under autocast of the device of its inputs; the float64 reference is not autocast."""

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for t in leaves((args, kwargs)) if isinstance(t, Tensor)]
        device = next((t.device.type for t in tensors if t.device.type != "cpu"), "cpu")
        with torch.autocast(device, dtype=dtype):
            return operator(*args, **kwargs)

    return call


def first_derivative(operator: Call, process_output: Callable[[Any], Any]) -> Call:
    """The gradients of the operator as outputs that can be differentiated again."""

    def call(*args: Any, **kwargs: Any) -> Any:
        processed = leaves(process_output(operator(*args, **kwargs)))
        outputs = [t for t in processed if isinstance(t, Tensor) and t.grad_fn is not None]
        inputs = differentiable_leaves((args, kwargs))
        gradients = torch.autograd.grad(
            outputs, inputs, [torch.ones_like(t) for t in outputs], create_graph=True, allow_unused=True
        )
        return [gradient for gradient in gradients if gradient is not None]

    return call


def tangents(operator: Call) -> Call:
    """The directional derivative along ones, by forward-mode differentiation."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with forward_ad.dual_level():

            def dual(leaf: Any) -> Any:
                if not isinstance(leaf, Tensor) or not leaf.requires_grad:
                    return leaf
                return forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))  # type: ignore[no-untyped-call]

            output = operator(*map_leaves(dual, args), **map_leaves(dual, kwargs))
            tensors = [t for t in leaves(output) if isinstance(t, Tensor)]
            return [tuple(forward_ad.unpack_dual(t)) for t in tensors]  # type: ignore[no-untyped-call]

    return call
