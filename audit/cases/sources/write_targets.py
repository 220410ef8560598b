"""In-place and out= calls whose written tensors are not contiguous: kernels may lose results or write elsewhere.

A target is a part of a larger storage of ones. The case's result includes the rest of that storage, so that a write
outside the target is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ...judging.transfer import move
from ...model.case import Case
from ..calls.invocation import SchemaCall
from .case_tensors import call_on_cpu, tensors_in, tensors_of, with_tensors
from .derived import THOROUGH, BaseGroup, Factor, in_each_case, rotated
from .forms import STRIDES_OF_OUT_IGNORED, takes_out
from .shared_storage import halves, sharing
from .tensor_layouts import IN_TURN, each_in_turn, filled

# Elements of storage before and behind a target: odd, so that a vectorised overrun does not end on its border.
MARGIN = 5

Place = Callable[[Tensor], "Tensor | None"]


def at_an_offset(tensor: Tensor) -> Tensor:
    """Contiguous in the middle of its storage."""
    return _window(tensor, tensor.shape)


def transposed(tensor: Tensor) -> Tensor | None:
    """Memory order reversed: the first dimension is the contiguous one."""
    if tensor.dim() < 2:
        return None
    backwards = tuple(range(tensor.dim() - 1, -1, -1))
    return _window(tensor.permute(backwards), tensor.shape[::-1]).permute(backwards)


def every_other_element(tensor: Tensor) -> Tensor | None:
    """Every other element of the last dimension of a larger tensor."""
    if tensor.dim() < 1:
        return None
    return _window(tensor, (*tensor.shape[:-1], 2 * tensor.shape[-1]), (..., slice(None, None, 2)))


def every_other_row(tensor: Tensor) -> Tensor | None:
    """Every other entry of the first dimension of a larger tensor."""
    if tensor.dim() < 2:
        return None
    return _window(tensor, (2 * tensor.shape[0], *tensor.shape[1:]), (slice(None, None, 2),))


def slice_of_larger(tensor: Tensor) -> Tensor | None:
    """A block inside a tensor that is larger by two in every dimension."""
    if tensor.dim() < 1:
        return None
    return _window(tensor, [size + 2 for size in tensor.shape], (slice(1, -1),) * tensor.dim())


def channels_last(tensor: Tensor) -> Tensor | None:
    """The memory format of images and volumes, for tensors of 4 and 5 dimensions."""
    if tensor.dim() not in (4, 5):
        return None
    behind = tensor.movedim(1, -1)
    return _window(behind, behind.shape).movedim(-1, 1)


def expanded(tensor: Tensor) -> Tensor | None:
    """All entries of the first dimension in the same memory, to which PyTorch refuses to write.

    The storage has room for all elements, so that a device that does not refuse corrupts no other memory.
    """
    if tensor.dim() < 1 or tensor.shape[0] < 2:
        return None
    room = _window(tensor, tensor.shape)
    return room[:1].expand(tensor.shape)


PLACES: tuple[Place, ...] = (
    transposed,
    at_an_offset,
    every_other_element,
    every_other_row,
    slice_of_larger,
    channels_last,
    expanded,
)


def _window(tensor: Tensor, larger: Sequence[int], window: Any = ...) -> Tensor:
    """A copy of the tensor in a part of a tensor of the shape `larger`, with margins of ones around it."""
    size = math.prod(larger)
    view = tensor.new_ones(size + 2 * MARGIN)[MARGIN : MARGIN + size].view(tuple(larger))[window]
    return view.copy_(tensor)


class WithRestOfStorage:
    """Calls an operator; the result also holds the targets, and the storage around them.

    Args:
        operator: what is called.
        targets: the positions of what it writes among the tensors of its arguments.
    """

    def __init__(self, operator: Callable[..., Any], targets: Sequence[int]) -> None:
        self.__name__ = getattr(operator, "__name__", "operator")
        self._operator = operator
        self._targets = targets

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The operator's result, copies of the targets, and copies of their storages with zeros in their places."""
        tensors = tensors_in((args, kwargs))
        targets = [tensors[position] for position in self._targets]
        extents = [extent_of(target) for target in targets]
        result = self._operator(*args, **kwargs)
        # A resized target may have left its storage; otherwise what surrounds it must be as it was.
        storages = [
            storage_around(target, targets) if extent_of(target) == extent else target.new_empty(0)
            for target, extent in zip(targets, extents, strict=True)
        ]
        return result, [target.clone() for target in targets], storages


def extent_of(target: Tensor) -> tuple[torch.Size, int]:
    """The shape of a tensor and the bytes of its storage, which differ after any resize, even a temporary one."""
    return target.shape, target.untyped_storage().nbytes()


def storage_around(target: Tensor, others: Sequence[Tensor] = ()) -> Tensor:
    """A copy of the target's whole storage, with zeros for its elements and those of `others` of the same dtype.

    Those elements are compared as results of the call.
    """
    storage = target.untyped_storage()
    whole = torch.empty(0, dtype=target.dtype, device=target.device).set_(storage).clone()
    beside = [other for other in others if other.untyped_storage()._cdata == storage._cdata]
    for tensor in (target, *(other for other in beside if other.dtype is target.dtype)):
        shape = [1 if step == 0 else size for size, step in zip(tensor.shape, tensor.stride(), strict=True)]
        whole.as_strided(shape, tensor.stride(), tensor.storage_offset()).zero_()
    return whole


def in_place_case(case: Case, inplace_variant: Callable[..., Any]) -> tuple[Case, list[int]]:
    """The case as an in-place call, and the positions of what it writes: the tensors of the first argument."""
    written = [i for i, t in enumerate(tensors_in(case.args[:1])) if t.layout is torch.strided]
    return replace(plain(case), call=inplace_variant, title="in place"), written


def out_case(case: Case, operator: Callable[..., Any]) -> tuple[Case, list[int]] | None:
    """The case with out= tensors of ones in the shapes that the CPU returns, and their positions.

    None if the CPU refuses the call or does not return strided tensors.
    """
    called = plain(case)
    try:
        result = call_on_cpu(replace(called, call=operator))
    except Exception:  # whatever the CPU refuses needs no out=
        return None
    outs = [result] if isinstance(result, Tensor) else result
    if not isinstance(outs, (tuple, list)) or not outs or not all(isinstance(t, Tensor) for t in outs):
        return None
    if any(t.layout is not torch.strided for t in outs):
        return None
    fresh = tuple(map(_ones_like, outs))
    first = len(tensors_of(called))
    out = fresh[0] if isinstance(result, Tensor) else fresh
    return replace(called, kwargs={**called.kwargs, "out": out}, title="out="), [first + i for i in range(len(fresh))]


def schema_case(case: Case) -> tuple[Case, list[int]] | None:
    """A schema call that writes, with targets of the shapes that the CPU gives them, and their positions.

    None for a call that writes nothing or that the CPU refuses.
    """
    if not isinstance(case.call, SchemaCall) or not case.call.writes:
        return None
    called = plain(case)
    args, kwargs = move(called.args, called.kwargs, "cpu")
    try:
        case.call(*args, **kwargs)
    except Exception:  # a call that the CPU refuses would be refused in every layout
        return None
    before = tensors_of(called)
    own = tensors_in(case.call.written(called.args, called.kwargs))
    after = tensors_in((args, kwargs))
    positions = [i for i, t in enumerate(before) if t.layout is torch.strided and any(t is target for target in own)]
    if any(size < 0 for i in positions for size in after[i].shape):  # some calls make tensors that cannot be made again
        return None
    fitting = {i: _ones_like(after[i]) for i in positions if after[i].shape != before[i].shape}
    return with_tensors(called, fitting, "out=" if "out" in case.kwargs else "written"), positions


def _ones_like(tensor: Tensor) -> Tensor:
    return torch.ones(tensor.shape, dtype=tensor.dtype)


def plain(case: Case) -> Case:
    """The case, comparing only values; if the CPU refuses it, the device must refuse it too."""
    detached = {i: t.detach() for i, t in enumerate(tensors_of(case)) if t.requires_grad}
    return replace(with_tensors(case, detached, case.title), differentiable=False, errors_count=True, elementwise=False)


def written_in(case: Case, targets: Sequence[int], place: Place) -> Case | None:
    """The case with its targets in `place`, or None if no target fits there.

    A target that is given twice stays one tensor.
    """
    tensors = tensors_of(case)
    placed = {id(tensors[i]): place(tensors[i]) for i in targets}
    others = {i: t for i in targets if (t := placed[id(tensors[i])]) is not None}
    if not others:
        return None
    return with_storage_around(with_tensors(case, others, f"{case.title} {place.__name__.replace('_', ' ')}"), targets)


def with_storage_around(case: Case, targets: Sequence[int]) -> Case:
    """The case with a result that includes the storage around its targets."""
    return replace(case, call=WithRestOfStorage(case.call, targets), form=case.title)


def with_placed_targets(case: Case, targets: Sequence[int], places: Sequence[Place] = PLACES) -> Iterator[Case]:
    """The case with its targets in each of the places that they can have."""
    for place in places:
        varied = written_in(case, targets, place)
        if varied is not None:
            yield varied


# ---- the factors

# `forms` has out= at an offset, transposed and with every other element already.
OUT_PLACES: tuple[Place, ...] = (every_other_row, slice_of_larger, expanded)
# How many places are tried of dtypes other than float32, and of lists of targets.
PLACES_IN_TURN = 2
# Overloads whose CPU kernel writes as if what it writes into were contiguous, and private ones that their callers give
# contiguous tensors alone: there is nothing to compare with.
STRIDES_IGNORED = frozenset(
    {
        "_embedding_bag_dense_backward",
        "_embedding_bag_dense_backward.out",
        "adaptive_avg_pool3d.out",
        "adaptive_avg_pool3d_backward.grad_input",
        "adaptive_max_pool3d.out",
        "fractional_max_pool3d.output",
        "narrow_copy.out",
        "thnn_conv2d.out",
    }
)


def _applies(group: BaseGroup) -> bool:
    """Operators of OpInfos with in-place or out= calls, in one dtype of each kind."""
    return group.key.dtype in (THOROUGH, *IN_TURN) and (
        group.opinfo.inplace_variant is not None
        or (takes_out(group.opinfo) and group.key.operator not in STRIDES_OF_OUT_IGNORED)
    )


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """In-place calls: targets in places, next to another operand, other tensors in other layouts. Then out= calls."""
    thorough = group.key.dtype == THOROUGH
    given = opinfo_in_place(group, case)
    if given is not None:
        called, targets = given
        if thorough and len(targets) == 1:
            yield from with_placed_targets(called, targets)
        else:
            yield from islice(
                with_placed_targets(called, targets, rotated(PLACES, group.first_variation)), PLACES_IN_TURN
            )
        yield from sharing_storage_with_operand(called, targets)
        yield from each_in_turn(with_storage_around(called, targets), group.first_variation, but=targets)
    given = opinfo_with_out(group, case)
    if given is not None:
        yield from with_placed_targets(
            *given, OUT_PLACES if thorough else rotated(OUT_PLACES, group.first_variation)[:1]
        )


def opinfo_in_place(group: BaseGroup, case: Case) -> tuple[Case, list[int]] | None:
    """The sample of an OpInfo as `in_place_case`, or None if it cannot be called in place."""
    if group.opinfo.inplace_variant is None or not tensors_in(case.args[:1]):
        return None
    return in_place_case(case, group.opinfo.inplace_variant)


def opinfo_with_out(group: BaseGroup, case: Case) -> tuple[Case, list[int]] | None:
    """The sample of an OpInfo as `out_case`, or None if it cannot be called with out=."""
    if not takes_out(group.opinfo) or group.key.operator in STRIDES_OF_OUT_IGNORED:
        return None
    return None if "out" in case.kwargs or case.uninitialised else out_case(case, group.opinfo.op)


def _schema_applies(group: BaseGroup) -> bool:
    """Overloads that write, in float32."""
    return group.key.dtype == THOROUGH and group.key.operator not in STRIDES_IGNORED and group.writes


def _schema_variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """Targets transposed, then in one other place, chosen in turn; then the tensors that are read in other layouts."""
    given = schema_case(case)
    if given is None:
        return
    called, targets = given
    yield from with_placed_targets(called, targets, (transposed,))
    others = rotated(tuple(place for place in PLACES if place is not transposed), group.first_variation)
    chosen = list(islice(with_placed_targets(called, targets, others), 1))
    yield from chosen
    yield from sharing_storage_with_operand(called, targets)
    yield from each_in_turn(with_storage_around(called, targets), group.first_variation, but=targets)
    if any(case.title.endswith(expanded.__name__) for case in chosen):  # refused: nothing was written
        yield from with_placed_targets(called, targets, (at_an_offset,))


TARGET_FACTOR = Factor("targets", in_each_case(_variations), _applies)
SCHEMA_TARGET_FACTOR = Factor(
    "targets", in_each_case(_schema_variations), _schema_applies, lambda group, cases: filled(cases)
)


def sharing_storage_with_operand(case: Case, targets: list[int]) -> Iterator[Case]:
    """The case with a target and another operand as parts of one storage that do not overlap."""
    varied = sharing(case, halves)
    if varied is not None:
        yield with_storage_around(varied, targets)
