"""`x[i, j]` and `x[i, j] = v` with tensors as indices: `index`, `index_put`, and selecting or scattering by a mask.

Source: `dispatch_index_kernel` and related functions in aten/src/ATen/native/mps/operations/Indexing.mm, and the shared
aten/src/ATen/native/{TensorAdvancedIndexing,IndexingUtils} (`make_info`, `AdvancedIndex`), main, 2026; the kernels of
2.13.0 and 2.15.0 take the same arguments. Only the width of an element matters, except for sums:

    index_select_{8,16,32,64}bit         x[i]
    index_put_{8,16,32,64}bit            x[i] = v; `_serial_` with deterministic algorithms, by one thread
    index_put_accumulate_T               x[i] += v

A kernel iterates like TensorIterator over the result, x without its indexed dimensions, and the indices. The offset of
an index comes from `index_sizes` and `index_strides` (bytes). Masks are replaced by the coordinates of their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..call import Call
from ..iterator import broadcast, geometry
from ..plan import ERROR_BUFFER, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .copies import copied
from .fills import masked_filled
from .metal_types import metal_name
from .nonzero import coordinates
from .operands import as_bits, at_least_one, bit_name

_MOST_INDICES = 16
_MASKS = (torch.bool, torch.uint8)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A tensor with its indices in the form that the kernels iterate over (`AdvancedIndex`).

    Attributes:
        walked: the tensor with the indices' common shape in place of its indexed dimensions, with stride 0 there.
        indices: int64 tensors that broadcast against `walked`, all with the same strides.
        sizes: of the indexed dimensions.
        strides: of the indexed dimensions, in bytes.
        steps: the steps that compute the indices, which must run first.
    """

    walked: Tensor
    indices: tuple[Tensor, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)


def indexed(kernels: ReleaseKernels, tensor: Tensor, given: Sequence[Tensor | None]) -> Indexed:
    """The tensor and its indices in the form that the kernels take.

    Raises:
        Declined: the convention does not cover this kind of index.
    """
    steps: list[Step] = []
    indices = _without_masks(kernels, given, steps)
    common = broadcast([tuple(index.shape) for index in indices if index is not None])
    indices = [None if index is None else index.expand(common) for index in indices]
    indices += [None] * (tensor.dim() - len(indices))
    tensor, indices = _transpose_to_front(tensor, indices)
    before = next(d for d, index in enumerate(indices) if index is not None)
    present = [_as_int64(kernels, index, steps) for index in indices if index is not None]
    after = tensor.dim() - before - len(present)
    if len(present) > _MOST_INDICES:
        raise Declined("more than 16 indices")
    last = before + len(present)
    walked = tensor.as_strided(
        (*tensor.shape[:before], *common, *tensor.shape[last:]),
        (*tensor.stride()[:before], *[0] * len(common), *tensor.stride()[last:]),
        tensor.storage_offset(),
    )
    present = [index[(None,) * before + (...,) + (None,) * after] for index in present]
    if any(index.stride() != present[0].stride() for index in present):
        present = [_as_contiguous(kernels, index, steps) for index in present]
    return Indexed(
        walked=walked,
        indices=tuple(present),
        sizes=tuple(tensor.shape[before:last]),
        strides=tuple(stride * tensor.element_size() for stride in tensor.stride()[before:last]),
        steps=steps,
    )


def _without_masks(kernels: ReleaseKernels, given: Sequence[Tensor | None], steps: list[Step]) -> list[Tensor | None]:
    """Replace every mask by the coordinates of its true elements, one index for each dimension (`expandTensors`)."""
    indices: list[Tensor | None] = []
    for index in given:
        if index is None or index.dtype not in _MASKS:
            indices.append(index)
            continue
        if index.dim() == 0:
            raise Declined("a mask without dimensions")
        positions = selected(kernels, index, steps)
        indices += positions.unbind(1)
    return indices


def selected(kernels: ReleaseKernels, mask: Tensor, steps: list[Step]) -> Tensor:
    """The coordinates of a mask's true elements; counts them on the host, as torch does."""
    count = int(torch.count_nonzero(mask))
    positions = torch.empty((count, mask.dim()), dtype=torch.int64, device="cpu")
    if count:
        steps += coordinates(kernels, mask, positions, count)
    return positions


def _transpose_to_front(tensor: Tensor, indices: list[Tensor | None]) -> tuple[Tensor, list[Tensor | None]]:
    """Move indexed dimensions to the front, unless they are adjacent already (`transposeToFront`)."""
    places = [d for d, index in enumerate(indices) if index is not None]
    if places == list(range(places[0], places[-1] + 1)):
        return tensor, indices
    order = [*places, *(d for d, index in enumerate(indices) if index is None)]
    return tensor.permute(order), [indices[d] for d in order]


def _as_int64(kernels: ReleaseKernels, index: Tensor, steps: list[Step]) -> Tensor:
    if index.dtype == torch.int64:
        return index
    converted = torch.empty_like(index, dtype=torch.int64)
    steps.append(copied(kernels, converted, index))
    return converted


def _as_contiguous(kernels: ReleaseKernels, index: Tensor, steps: list[Step]) -> Tensor:
    if index.is_contiguous():
        return index
    dense = torch.empty(index.shape, dtype=index.dtype, device="cpu")
    steps.append(copied(kernels, dense, index))
    return dense


def _launch(name: str, output: Tensor, source: Tensor, by: Indexed, one_thread: bool = False) -> list[Step]:
    walk = geometry(output, source, *by.indices)
    if walk.numel == 0:
        return []
    if not walk.fits_32_bits:
        raise Declined("offsets of more than 32 bits")
    arguments = {
        "output": output,
        "input": source,
        "indices": list(by.indices),
        "sizes": at_least_one(walk.shape),
        "output_strides": at_least_one(walk.strides[0]),
        "input_strides": at_least_one(walk.strides[1]),
        "indices_strides": at_least_one(walk.strides[2]),
        "index_sizes": list(by.sizes),
        "index_strides": list(by.strides),
        "ndim_nindices_numel": [len(walk.shape), len(by.indices), walk.numel, 0],
        "error_buffer": ERROR_BUFFER,
    }
    return [KernelLaunch(name, arguments, *in_line(1 if one_thread else walk.numel))]


def taken(kernels: ReleaseKernels, result: Tensor, tensor: Tensor, given: Sequence[Tensor | None]) -> list[Step]:
    """The steps of `result = tensor[given]`."""
    by = indexed(kernels, tensor, given)
    name = required(kernels, f"index_select_{bit_name(result)}")
    return [*by.steps, *_launch(name, as_bits(result), as_bits(by.walked), by)]


def put(
    kernels: ReleaseKernels, target: Tensor, given: Sequence[Tensor | None], value: Tensor, accumulate: bool = False
) -> list[Step]:
    """The steps of `target[given] = value`, or `+=`."""
    by = indexed(kernels, target, given)
    if accumulate:
        name = required(kernels, f"index_put_accumulate_{metal_name(target.dtype)}")
        return [*by.steps, *_launch(name, by.walked, value, by)]
    serial = torch.are_deterministic_algorithms_enabled()
    name = required(kernels, f"index_put_{'serial_' if serial else ''}{bit_name(target)}")
    return [*by.steps, *_launch(name, as_bits(by.walked), as_bits(value), by, serial)]


# ------------------------------------------------------------------------------------------------ overloads
def _index(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return taken(kernels, call.result, call["self"], call["indices"])


def _index_put(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Plan `masked_fill_` for a host scalar and a single mask (`canDispatchToMaskedFill`), else `index_put`."""
    target, indices, value = call.result, call["indices"], call["values"]
    if not call["accumulate"] and "values" in call.on_host and value.numel() == 1:
        given = [index for index in indices if index is not None]
        if len(given) == 1 and given[0].dtype in _MASKS:
            mask = given[0]
            before = next(d for d, index in enumerate(indices) if index is mask)
            after = target.dim() - before - mask.dim()
            spread = mask.view((1,) * before + mask.shape + (1,) * after)
            return [masked_filled(kernels, target, spread, value.item())]
    return put(kernels, target, indices, value, call["accumulate"])


def _masked_select(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    mask, tensor = _broadcast_tensors(call["mask"], call["self"])
    return taken(kernels, call.result, tensor, [mask])


def _masked_scatter(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Use `index_put` on a copy and copy the result back, because `index_put.out` has no kernel."""
    mask, target = _broadcast_tensors(call["mask"], call.result)
    steps: list[Step] = []
    positions = selected(kernels, mask, steps)
    if positions.size(0) == 0:
        return []
    changed = torch.empty_like(target)
    value = call["source"].flatten()[: positions.size(0)]
    steps.append(copied(kernels, changed, target))
    steps += put(kernels, changed, positions.unbind(1), value)
    return [*steps, copied(kernels, target, changed)]


def _broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """Tensors broadcast against each other, with at least one dimension."""
    common = broadcast([(1,), *(tuple(tensor.shape) for tensor in tensors)])
    return [tensor.expand(common) for tensor in tensors]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("index.Tensor", "index.Tensor_out"), _index),
    "_index_put_impl_": _index_put,
    **dict.fromkeys(("masked_select", "masked_select.out"), _masked_select),
    "masked_scatter_": _masked_scatter,
}
