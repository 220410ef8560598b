"""One step of Adagrad on lists of parameters: one launch for up to six parameters, without a read-back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ..runtime.elementwise import is_in_vectors, launch_over, vectors_of
from ..runtime.operands import require_scalar_type, require_supported
from ..runtime.outputs import refuse_internal_overlap
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
# A parameter takes four of the 31 buffers of a kernel, the numbers of the step five.
_AT_ONCE = 6
# A parameter, its gradient, its sum and its step.
_Row = tuple[torch.Tensor, torch.Tensor, torch.Tensor, float | torch.Tensor]


def fused_adagrad_(
    self: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    state_sums: Sequence[torch.Tensor],
    state_steps: Sequence[torch.Tensor],
    *,
    lr: float | torch.Tensor,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    """`_fused_adagrad_` and `_fused_adagrad_.tensor_lr`, in place on parameters and sums.

    The parameter, gradient and sum of one index have the same shape and floating dtype, and any strides. Steps count
    from 1. Steps, `grad_scale` and `found_inf` are float32 tensors of one element, on the device or 0-dimensional on
    the CPU. Gradients are divided by `grad_scale`, also in their tensors; a `found_inf` of 1 skips the step.
    """
    if not len(self) == len(grads) == len(state_sums) == len(state_steps):
        raise RuntimeError(
            f"_fused_adagrad_ needs lists of one length, got {len(self)} parameters, {len(grads)} gradients, "
            f"{len(state_sums)} sums and {len(state_steps)} steps"
        )
    flags = [float(maximize), float(grad_scale is not None), float(found_inf is not None)]
    numbers = [float(lr_decay), float(weight_decay), float(eps), *flags]
    rate = _number(lr, "lr")
    for tensor in (grad_scale, found_inf):
        if tensor is not None:
            require_scalar_type(tensor, torch.float32)
    scale = 1.0 if grad_scale is None else _number(grad_scale, "grad_scale")
    inf = 0.0 if found_inf is None else _number(found_inf, "found_inf")
    rows: dict[torch.dtype, list[_Row]] = {}
    for parameter, gradient, total, step in zip(self, grads, state_sums, state_steps, strict=True):
        _check(parameter, gradient, total)
        count = _number(step, "state_steps")
        if parameter.numel() and is_in_vectors((parameter, gradient, total)):
            rows.setdefault(parameter.dtype, []).append((parameter, gradient, total, count))
        else:
            launch_over(_shader, "fused_adagrad", (parameter, gradient, total), (numbers, rate, count, scale, inf))
    for alike in rows.values():
        for batch in _batches(alike):
            _launch(batch, numbers, rate, scale, inf)


def _batches(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """The rows in batches of a launch; tensors in the same memory are written one after the other."""
    batch: list[_Row] = []
    held: set[int] = set()
    for row in rows:
        places = {tensor.data_ptr() for tensor in row[:3]}
        if len(batch) == _AT_ONCE or not held.isdisjoint(places):
            yield batch
            batch, held = [], set()
        batch.append(row)
        held |= places
    yield batch


def _launch(batch: list[_Row], numbers: list[float], *constants: float | torch.Tensor) -> None:
    """Step on the tensors of a batch; `constants`: the rate, the scale of gradients, and `found_inf`."""
    if len(batch) == 1:
        (*operands, step), (rate, *others) = batch[0], constants
        launch_over(_shader, "fused_adagrad", operands, (numbers, rate, step, *others))
        return
    first, vectors = [], 0
    for parameter, *_ in batch:
        first.append(vectors)
        vectors += vectors_of(parameter)
    missing = _AT_ONCE - len(batch)
    rows = [*batch, *batch[-1:] * missing]
    sizes = [*first, *[vectors] * missing, *(row[0].numel() for row in rows)]
    buffers = [tensor for row in rows for tensor in row]
    kernel = _shader.kernel(f"fused_adagrad_several_{METAL_TYPES[rows[0][0].dtype]}", rows[0][0].device)
    kernel(*buffers, numbers, *constants, sizes, threads=vectors)


def _number(value: float | torch.Tensor, name: str) -> float | torch.Tensor:
    """A float by value, or a float32 tensor on the device.

    A CPU tensor is passed by value: torch would pass the first element of its storage, even for a view like `steps[3]`.
    """
    if not isinstance(value, torch.Tensor):
        return float(value)
    if value.numel() != 1:
        raise RuntimeError(f"_fused_adagrad_: {name} must have one element, not {value.numel()}")
    return float(value) if value.device.type == "cpu" else value.reshape(()).to(torch.float32)


def _check(parameter: torch.Tensor, gradient: torch.Tensor, total: torch.Tensor) -> None:
    require_supported(parameter, "_fused_adagrad_")
    for other in (gradient, total):
        if other.dtype != parameter.dtype or other.shape != parameter.shape:
            raise RuntimeError(
                "_fused_adagrad_: a parameter, its gradient and its sum must have one dtype and one shape, got "
                f"{parameter.dtype} {list(parameter.shape)} and {other.dtype} {list(other.shape)}"
            )
    for written in (parameter, gradient, total):
        refuse_internal_overlap(written)


def fake_fused_adagrad_(*lists: Sequence[torch.Tensor], **options: object) -> None:
    """For fake tensors: nothing is returned, because all is in place."""


def fake_fused_adagrad(
    self: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    state_sums: Sequence[torch.Tensor],
    state_steps: Sequence[torch.Tensor],
    **options: object,
) -> tuple[list[torch.Tensor], ...]:
    """The shapes of the new parameters, gradients, sums and steps, for fake tensors."""
    lists = (self, grads, state_sums, state_steps)
    return tuple([torch.empty_like(tensor) for tensor in tensors] for tensors in lists)


KERNELS = (("aten::_fused_adagrad_", fused_adagrad_), ("aten::_fused_adagrad_.tensor_lr", fused_adagrad_))
FAKES = (
    ("aten::_fused_adagrad_", fake_fused_adagrad_),
    ("aten::_fused_adagrad_.tensor_lr", fake_fused_adagrad_),
    ("aten::_fused_adagrad", fake_fused_adagrad),
    ("aten::_fused_adagrad.tensor_lr", fake_fused_adagrad),
)
