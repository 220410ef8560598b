"""The same values in other memory layouts, the most common cause of silent wrong results on mps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import tensors_in, tensors_of, with_tensors
from .derived import MAIN_DTYPES, Factor, in_each_case

Layout = Callable[[Tensor], "Tensor | None"]


def transposed(tensor: Tensor) -> Tensor | None:
    """Memory order reversed: the first dimension is the contiguous one."""
    if tensor.dim() < 2:
        return None
    reversed_dims = tuple(range(tensor.dim() - 1, -1, -1))
    return tensor.permute(reversed_dims).contiguous().permute(reversed_dims)


def stepped(tensor: Tensor) -> Tensor | None:
    """Every other element of the last dimension of a larger tensor."""
    if tensor.dim() < 1:
        return None
    larger = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] * 2))
    larger[..., ::2] = tensor
    return larger[..., ::2]


def offset(tensor: Tensor) -> Tensor:
    """Contiguous, but starting in the middle of its storage, off any 16-byte boundary."""
    storage = tensor.new_zeros(tensor.numel() + 5)
    view = storage[3 : 3 + tensor.numel()].view(tensor.shape)
    view.copy_(tensor)
    return view


def expanded(tensor: Tensor) -> Tensor | None:
    """The first entry of the first dimension repeated with stride 0 (the values change, but equally on both devices).

    The storage has room for all entries: some of the CPU's kernels read and write there as if it were contiguous.
    """
    if tensor.dim() < 1 or tensor.shape[0] < 2:
        return None
    room = tensor.new_zeros(tensor.shape)
    room[:1] = tensor[:1]
    return room[:1].expand(tensor.shape)


def padded_rows(tensor: Tensor) -> Tensor | None:
    """Rows with a gap between them, as a crop of an image has."""
    if tensor.dim() < 2:
        return None
    larger = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] + 3))
    larger[..., 1:-2] = tensor
    return larger[..., 1:-2]


def stepped_rows(tensor: Tensor) -> Tensor | None:
    """Every other entry of the first dimension; the last one stays contiguous."""
    if tensor.dim() < 2:
        return None
    larger = tensor.new_zeros((tensor.shape[0] * 2, *tensor.shape[1:]))
    larger[::2] = tensor
    return larger[::2]


def swapped_in_front(tensor: Tensor) -> Tensor | None:
    """The first two of three or more dimensions swapped in memory; the last one stays contiguous."""
    return tensor.transpose(0, 1).contiguous().transpose(0, 1) if tensor.dim() > 2 else None


def channels_last(tensor: Tensor) -> Tensor | None:
    """The memory format of images and volumes, for tensors of 4 and 5 dimensions."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.dim()]) if tensor.dim() in formats else None


def as_strided(tensor: Tensor) -> Tensor | None:
    """Strides that no slicing gives, without overlap."""
    if tensor.dim() < 2:
        return None
    strides, step = [], 2
    for size in tensor.shape:
        strides.append(step)
        step *= size + 1
    view = tensor.new_zeros(step + 4).as_strided(tensor.shape, strides, 1)
    view.copy_(tensor)
    return view


def conjugate_view(tensor: Tensor) -> Tensor | None:
    """Complex values with a lazy conjugation."""
    return torch.conj(tensor.conj().resolve_conj()) if tensor.is_complex() else None


def negative_view(tensor: Tensor) -> Tensor | None:
    """Values with a lazy negation."""
    return torch._neg_view(-tensor) if tensor.is_floating_point() else None


LAYOUTS: tuple[Layout, ...] = (
    transposed,
    stepped,
    offset,
    expanded,
    padded_rows,
    channels_last,
    as_strided,
    conjugate_view,
    negative_view,
)


def in_every_layout(case: Case, layouts: Sequence[Layout] = LAYOUTS) -> Iterator[Case]:
    """One case for each layout, all tensors in it; and one with the gradients of the outputs not contiguous."""
    for layout in layouts:
        varied = in_layout(case, layout)
        if varied is not None:
            yield varied
    mixed = with_scalars_on_host(case)
    if mixed is not None:
        yield mixed
    if case.differentiable:
        yield replace(case, title="gradients of the outputs transposed", cotangent_layout=transposed)


def in_layout(case: Case, layout: Layout) -> Case | None:
    """The case with every tensor that can have it in `layout`, or None when none can."""
    varied = relaid(case, layout, lambda place: True)
    return varied and replace(varied, title=layout.__name__.replace("_", " "))


def relaid(case: Case, layout: Layout, chosen: Callable[[int], bool]) -> Case | None:
    """The case with the tensors at `chosen` positions in `layout`, or None if none of them can have it."""
    others: dict[int, Tensor] = {}
    for position, tensor in enumerate(tensors_of(case)):
        other = layout(tensor.detach()) if chosen(position) and tensor.layout is torch.strided else None
        if other is not None:
            others[position] = other.requires_grad_(tensor.requires_grad)
    return with_tensors(case, others, case.title) if others else None


def with_scalars_on_host(case: Case) -> Case | None:
    """The case with its second argument as a 0-dim CPU tensor, as `tensor_on_mps * torch.tensor(2.0)` has.

    PyTorch promises that to elementwise operators alone; what others accept is an accident of how they are written.
    """
    if not case.elementwise or len(case.args) < 2 or not all(isinstance(arg, Tensor) for arg in case.args[:2]):
        return None
    first, second, *rest = case.args
    if first.dim() == 0 or second.numel() == 0 or second.layout is not torch.strided:
        return None
    if tensors_in(rest):
        return None
    scalar = second.detach().flatten()[0].clone()
    on_host = case.on_host | {1}
    # Forward alone: some of torch's derivative formulas mix the devices in ways that no device accepts.
    return replace(case, args=(first, scalar, *rest), on_host=on_host, title="0-dim CPU scalar", differentiable=False)


LAYOUT_FACTOR = Factor("layouts", in_each_case(lambda group, case: in_every_layout(case)), dtypes=MAIN_DTYPES)
