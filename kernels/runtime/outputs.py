"""Checks and resizes outputs as torch does, with the operator's meta kernel, and resolves overlaps."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from .operands import scalar_type
from .signatures import keep, plans

_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def on_meta(value: Any) -> Any:
    """The value with each tensor, also in lists, replaced by one of the same shape, strides and dtype on meta."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return [on_meta(item) for item in value]
    return value


def check_outputs(
    overload: Any,
    args: Sequence[Any],
    outputs: dict[str, torch.Tensor],
    dtypes: Sequence[torch.dtype | None],
    **kwargs: Any,
) -> None:
    """Check the given outputs as the CPU does, and resize each to the shape that the operator's meta kernel returns.

    `overload`: the out overload, `torch.ops.aten.heaviside.out`. `dtypes`: the dtype that each output must have; None
        if the result is cast to the output's dtype. This is needed because meta kernels in Python accept any dtype.
    Raises RuntimeError for an output of a different dtype, and what the meta kernel raises for shapes that do not fit.
    """
    for (name, output), dtype in zip(outputs.items(), dtypes, strict=True):
        if dtype is not None and output.dtype != dtype:
            require_dtype(output, dtype, f"{_operator(overload)}, {name}")
    if any(output.is_cpu for output in outputs.values()):
        _refuse_cpu(_operator(overload), args, outputs)
    for output, (shape, strides) in zip(outputs.values(), _accepted(overload, args, kwargs, outputs), strict=True):
        if output.shape != shape:
            output.resize_(shape)
            if output.stride() != strides:
                output.as_strided_(shape, strides)
        refuse_internal_overlap(output)


def _accepted(
    overload: Any, args: Sequence[Any], kwargs: dict[str, Any], outputs: dict[str, torch.Tensor]
) -> Sequence[tuple[torch.Size, tuple[int, ...]]]:
    """The outputs' shapes and strides from the meta kernel, cached for calls that differ only in values.

    A call that resizes an output with elements is not cached, because the meta kernel warns of each.
    """
    key = _call_signature(overload, args, kwargs, outputs)
    earlier: Sequence[tuple[torch.Size, tuple[int, ...]]] | None = plans.get(key)
    if earlier is not None:
        return earlier
    shadows = {name: on_meta(output) for name, output in outputs.items()}
    overload(*map(on_meta, args), **{name: on_meta(value) for name, value in kwargs.items()}, **shadows)
    plan = [(shadow.shape, shadow.stride()) for shadow in shadows.values()]
    if all(x.numel() == 0 or x.shape == shape for x, (shape, _) in zip(outputs.values(), plan, strict=True)):
        keep(key, plan)
    return plan


def _call_signature(overload: Any, args: Sequence[Any], *named: dict[str, Any]) -> tuple[Any, ...]:
    """A key of all that the meta kernel reads from a call; `named`: the keyword arguments, and the outputs if any."""
    by_name = [(*keywords, _signature(keywords.values())) for keywords in named]
    return (overload, torch.get_default_dtype(), _signature(args), *by_name)


def _signature(values: Iterable[Any]) -> tuple[Any, ...]:
    """What a meta kernel reads from values, as a key. It has numbers' types, because 1 == 1.0 == True."""
    key: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            key.append((value.shape, value.stride(), value.dtype))
        elif isinstance(value, list | tuple):
            key.append(_signature(value))
        else:
            key.append((type(value), value))
    return tuple(key)


def _operator(overload: Any) -> str:
    return str(overload._schema.name).removeprefix("aten::")


def _refuse_cpu(operator: str, args: Sequence[Any], outputs: dict[str, torch.Tensor]) -> None:
    """Raise RuntimeError for an output on the CPU, which no kernel can write, if an argument is on another device."""
    device = next((x.device for x in args if isinstance(x, torch.Tensor) and not x.is_cpu), None)
    for name, output in outputs.items():
        if device is not None and output.is_cpu:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device} and cpu! "
                f"(when checking argument {name} of {operator})"
            )


def is_ready(output: torch.Tensor, shape: Sequence[int], dtype: torch.dtype) -> bool:
    """Whether a kernel can write an output directly: on a GPU, of this shape and dtype, without internal overlap."""
    return (
        output.dtype == dtype
        and not output.is_cpu
        and output.shape == (shape if isinstance(shape, tuple) else tuple(shape))
        and (output.is_contiguous() or not _shares_memory_within(output))
    )


def resize_output(output: torch.Tensor, shape: Sequence[int]) -> None:
    """Resize an output to the shape of the result, with torch's warning if it had elements."""
    if output.shape == (shape if isinstance(shape, tuple) else tuple(shape)):
        return
    if output.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(output.shape)}, which does not "
            f"match the required output shape {list(shape)}. Give an output of that shape, or resize it to zero "
            "elements first with t.resize_(0).",
            stacklevel=2,
        )
    output.resize_(tuple(shape))


def copy_to_output(output: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Resize the output and copy the result to it. Raises RuntimeError if several of its elements share memory."""
    resize_output(output, result.shape)
    refuse_internal_overlap(output)
    return output.copy_(result)


def contiguous_output(output: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The output itself if it is contiguous, else a contiguous tensor of its shape, which `finish` copies to it.

    `dtype`: the dtype of the result, if torch casts it to the output's.
    """
    if output.is_contiguous() and (dtype is None or dtype == output.dtype):
        return output
    return torch.empty(output.shape, dtype=dtype or output.dtype, device=output.device)


def empty_results(overload: Any, args: Sequence[Any], device: torch.device, **kwargs: Any) -> list[torch.Tensor]:
    """Uninitialised results of a functional overload, with the shapes, strides and dtypes of its meta kernel."""
    key = _call_signature(overload, args, kwargs)
    plan = plans.get(key)
    if plan is None:
        results = overload(*map(on_meta, args), **{name: on_meta(value) for name, value in kwargs.items()})
        shadows = results if isinstance(results, tuple | list) else [results]
        plan = keep(key, [(x.shape, x.stride(), x.dtype) for x in shadows])
    return [torch.empty_strided(shape, strides, dtype=dtype, device=device) for shape, strides, dtype in plan]


def finish(output: torch.Tensor, contiguous: torch.Tensor) -> torch.Tensor:
    """Copy the values that a kernel wrote to the `contiguous_output` to the output, and return the output."""
    return output if contiguous is output else output.copy_(contiguous)


def require_dtype(output: torch.Tensor, dtype: torch.dtype, operator: str) -> None:
    """Raise RuntimeError unless the output has the dtype of the result."""
    if output.dtype != dtype:
        raise RuntimeError(f"{operator}: Expected out tensor to have dtype {dtype}, but got {output.dtype} instead")


def require_castable(result: torch.dtype, output: torch.dtype) -> None:
    """Raise RuntimeError, as TensorIterator does, for an output dtype that cannot hold the result."""
    if result != output and not torch.can_cast(result, output):
        raise RuntimeError(
            f"result type {scalar_type(result)} can't be cast to the desired output type {scalar_type(output)}"
        )


def refuse_internal_overlap(written: torch.Tensor) -> None:
    """Raise RuntimeError for an output with several elements in one memory location, such as an expanded tensor."""
    if not written.is_contiguous() and _shares_memory_within(written):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location."
            " Please clone() the tensor before performing the operation."
        )


def refuse_overlap(written: torch.Tensor, *sources: torch.Tensor) -> None:
    """Raise RuntimeError for an output that shares memory with inputs that are read in any order.

    As in torch, tensors with gaps are not checked (`at::get_overlap_status`).
    """
    storage = written.untyped_storage().data_ptr()
    for source in sources:
        if source.untyped_storage().data_ptr() == storage and _share_memory(written, source):
            raise RuntimeError(_OVERLAP)


def refuse_partial_overlap(written: torch.Tensor, source: torch.Tensor) -> None:
    """Raise RuntimeError for an output that shares some memory with an input but is not the same view of it.

    As in torch, tensors with gaps are not checked.
    """
    is_same_view = (
        written.data_ptr() == source.data_ptr()
        and written.stride() == source.stride()
        and written.numel() == source.numel()
    )
    if not is_same_view and _share_memory(written, source):
        raise RuntimeError(_OVERLAP)


def copy_if_overlapping(output: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """The tensor to read for `source` while `output` is written element by element: a copy if they overlap.

    Raises RuntimeError for an overlap that torch refuses.
    """
    if not overlaps(output, source):
        return source
    refuse_partial_overlap(output, source)
    return source.clone()


def out_form(
    function: Callable[..., Any], overload: str, names: Sequence[str] = ("out",), *, casts: bool = False
) -> Callable[..., Any]:
    """The out form of a function that returns new tensors: it checks the given outputs and copies the results.

    `overload`: the name of the out form, such as "addr.out". `names`: the names of the outputs. `casts`: whether torch
        casts the results to the outputs' dtypes.
    """
    signature = inspect.signature(function)
    outputs = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]

    def call_with_one(*args: Any, **kwargs: Any) -> Any:
        output = kwargs.pop(names[0])
        result = function(*args, **kwargs)
        if not is_ready(output, result.shape, result.dtype):
            prepare(args, [(output, result)])
        return output.copy_(result)

    def call_with_several(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in names]
        results = function(*args, **kwargs)
        pairs = list(zip(given, results, strict=True))
        for output, result in pairs:
            if not is_ready(output, result.shape, result.dtype):
                prepare(args, pairs)
                break
        for output, result in pairs:
            output.copy_(result)
        return tuple(given)

    def prepare(args: tuple[Any, ...], pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        operator = overload.partition(".")[0]
        for name, (output, result) in zip(names, pairs, strict=True):
            if not casts:
                require_dtype(output, result.dtype, f"{operator}, {name}")
        _refuse_cpu(operator, args, {name: output for name, (output, _) in zip(names, pairs, strict=True)})
        for output, result in pairs:
            if output.shape != result.shape:
                resize_output(output, result.shape)
                output.as_strided_(result.shape, result.stride())
            refuse_internal_overlap(output)

    call = call_with_one if len(names) == 1 else call_with_several
    call.__doc__ = f"`{overload}`."
    vars(call)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), *outputs])
    return call


def functional_form(function: Callable[..., Any], name: str = "out") -> Callable[..., Any]:
    """The functional form of an out form's function; the output `name` has shape and dtype of the argument `self`."""
    signature = inspect.signature(function)
    position = list(signature.parameters).index("self")

    def call(*args: Any, **kwargs: Any) -> Any:
        like = args[position] if len(args) > position else kwargs["self"]
        kwargs[name] = torch.empty_like(like, memory_format=torch.contiguous_format)
        return function(*args, **kwargs)

    call.__doc__ = f"The form of `{function.__name__}` that returns a new tensor."
    inputs = [parameter for parameter in signature.parameters.values() if parameter.name != name]
    vars(call)["__signature__"] = signature.replace(parameters=inputs)
    return call


def _share_memory(written: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether two dense tensors have elements in common; False for others."""
    if written.numel() == 0 or source.numel() == 0 or written.device != source.device:
        return False
    if written.untyped_storage().data_ptr() != source.untyped_storage().data_ptr():
        return False
    if not (_is_dense(written) and _is_dense(source)):
        return False
    first, last = _extent(written)
    start, end = _extent(source)
    return first < end and start < last


def _is_dense(x: torch.Tensor) -> bool:
    first, end = _extent(x)
    return end - first == x.numel() * x.element_size() and not _shares_memory_within(x)


def _extent(x: torch.Tensor) -> tuple[int, int]:
    """The byte offsets in the storage of the first element and of the end of the last one."""
    span = sum(int((size - 1) * stride) for size, stride in zip(x.shape, x.stride(), strict=True))
    start = int(x.storage_offset()) * x.element_size()
    return start, start + (span + 1) * x.element_size()


def _shares_memory_within(x: torch.Tensor) -> bool:
    if x.is_contiguous():
        return False
    strides = x.stride()
    if 0 not in strides or not x.numel():
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(x.shape, strides, strict=True))


def shares_storage(output: torch.Tensor, sources: Sequence[torch.Tensor]) -> bool:
    """Whether a source is in the output's storage. It rarely is, and only then can the two overlap."""
    storage = output.untyped_storage().data_ptr()
    for source in sources:  # noqa: SIM110, a generator takes longer than what it does here
        if source.untyped_storage().data_ptr() == storage:
            return True
    return False


def overlaps(output: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether writing `output` element by element may change elements of `source` that are still to be read."""
    if output is source or output.untyped_storage().data_ptr() != source.untyped_storage().data_ptr():
        return False
    same = output.storage_offset() == source.storage_offset() and output.stride() == source.stride()
    return not (same and output.shape == source.shape and output.dtype == source.dtype)
