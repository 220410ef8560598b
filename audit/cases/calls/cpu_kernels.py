"""CPU kernels for the operators that PyTorch has only for mps, as references for their results.

Each is composed of operators that the CPU has. They are registered once a process, before schemas are searched or
their calls replayed; an operator that has a kernel on the CPU is left alone, if that writes into its result alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def mps_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: Any, stride: Any, dilation: Any, groups: int
) -> Tensor:
    """`aten::_mps_convolution`: a convolution, padding before stride."""
    return aten.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)  # type: ignore[no-any-return]


def mps_convolution_backward(
    x: Tensor,
    gradient: Tensor,
    weight: Tensor,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """`aten::mps_convolution_backward`: gradients of input, weight and bias."""
    none = [0] * len(stride)
    gradients = aten.convolution_backward(
        gradient, x, weight, [weight.shape[0]], stride, padding, dilation, False, none, groups, list(wanted)
    )
    return tuple(gradients)


def mps_convolution_transpose(
    x: Tensor, weight: Tensor, padding: Any, output_padding: Any, stride: Any, dilation: Any, groups: int
) -> Tensor:
    """`aten::_mps_convolution_transpose`: a transposed convolution without bias."""
    return aten.convolution(x, weight, None, stride, padding, dilation, True, output_padding, groups)  # type: ignore[no-any-return]


def mps_convolution_transpose_backward(
    x: Tensor,
    gradient: Tensor,
    weight: Tensor,
    padding: Any,
    output_padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """`aten::mps_convolution_transpose_backward`: gradients of input and weight."""
    gradients = aten.convolution_backward(
        gradient, x, weight, None, stride, padding, dilation, True, output_padding, groups, [*wanted, False]
    )
    return tuple(gradients[:2])


def linear_backward(
    x: Tensor, gradient: Tensor, weight: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """`aten::linear_backward`: gradients of input, weight and bias."""
    rows, inputs = gradient.reshape(-1, gradient.shape[-1]), x.reshape(-1, x.shape[-1])
    return (
        gradient @ weight.conj() if wanted[0] else None,
        rows.mT @ inputs.conj() if wanted[1] else None,
        rows.sum(0) if wanted[2] else None,
    )


def max_pool2d_backward(
    gradient: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """`aten::max_pool2d_backward`: finds the maxima again, then sends the gradient to them."""
    geometry = (kernel, stride, padding, dilation, ceil_mode)
    _, indices = aten.max_pool2d_with_indices(x, *geometry)
    return aten.max_pool2d_with_indices_backward(gradient, x, *geometry, indices)  # type: ignore[no-any-return]


def attention_for_mps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """`aten::_scaled_dot_product_attention_math_for_mps`: the result and the weights; no dropout."""
    if dropout or dropout_mask is not None or enable_gqa:
        raise NotImplementedError("the CPU reference has neither dropout nor grouped queries")
    scores = query @ key.mT * (scale or 1 / math.sqrt(query.shape[-1]))
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    elif mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    weights = scores.softmax(-1)
    return weights @ value, weights


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """`aten::_copy_from`: writes into a tensor of the same shape and returns it."""
    return target.copy_(source)


def copy_from_and_resize(source: Tensor, target: Tensor) -> Tensor:
    """`aten::_copy_from_and_resize`: the same, the target takes the shape first."""
    return target.resize_(source.shape).copy_(source)


KERNELS: dict[str, Callable[..., Any]] = {
    "_mps_convolution": mps_convolution,
    "mps_convolution_backward": mps_convolution_backward,
    "_mps_convolution_transpose": mps_convolution_transpose,
    "mps_convolution_transpose_backward": mps_convolution_transpose_backward,
    "linear_backward": linear_backward,
    "max_pool2d_backward": max_pool2d_backward,
    "_scaled_dot_product_attention_math_for_mps": attention_for_mps,
    "_copy_from": copy_from,
    "_copy_from_and_resize": copy_from_and_resize,
}


# Whose kernels take the strides of their output for those of rows; tril and triu all but the last three of them.
INTO_ROWS = (
    "tril.out",
    "triu.out",
    *(f"{mode}_pad{dims}d.out" for mode in ("reflection", "replication") for dims in (2, 3)),
    *(f"_{log}softmax{of}.out" for log in ("", "log_") for of in ("", "_backward_data")),
    *("avg_pool3d.out", "avg_pool3d_backward.grad_input", "im2col.out", "upsample_bicubic2d_backward.grad_input"),
)


def in_rows(overload: str) -> Callable[..., Tensor]:
    """The CPU's kernel, into rows, and from there into an output of other strides."""
    original = torch.library.get_kernel(f"aten::{overload}", "CPU")

    def kernel(keys: torch._C.DispatchKeySet, x: Tensor, *args: Any, **output: Tensor) -> Tensor:
        ((name, out),) = output.items()
        shares = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()  # it refuses some of these
        if not (out.is_contiguous() or shares):
            rows = torch.empty_like(out, memory_format=torch.contiguous_format)
            original.call_boxed(keys, x, *args, **{name: rows})
            if rows.shape == out.shape:  # else out is resized
                return out.copy_(rows)
        return original.call_boxed(keys, x, *args, **output)  # type: ignore[no-any-return]

    return kernel


# Which arguments a kernel takes for contiguous: it reads them without their strides, and so beyond the memory of some,
# or, a batch norm into given moments, takes what was in these for the mean of an input of other strides. Into an output
# in channels last it writes rows of an input in rows.
FROM_ROWS = {
    "_weight_norm_interface": (0, 1),
    "_weight_norm_interface_backward": (0,),
    "native_batch_norm.out": (0,),
    "_batch_norm_with_update.out": (0,),
    "_native_batch_norm_legit.out": (0,),
    "_native_batch_norm_legit.no_stats_out": (0,),
}


def from_rows(overload: str) -> Callable[..., Any]:
    """The CPU's kernel, with contiguous inputs, and into rows."""
    original, places = torch.library.get_kernel(f"aten::{overload}", "CPU"), FROM_ROWS[overload]

    def kernel(keys: torch._C.DispatchKeySet, *args: Any, **outputs: Tensor) -> Any:
        inputs = (arg.contiguous() if place in places else arg for place, arg in enumerate(args))
        rows = {name: output.contiguous() for name, output in outputs.items()}
        results = original.call_boxed(keys, *inputs, **rows)
        for name, output in outputs.items():
            if rows[name] is not output:
                output.resize_(rows[name].shape).copy_(rows[name])
        return tuple(outputs.values()) or results

    return kernel


# Whose kernels, but for sums in narrow dtypes, let the last bag end with the indices where a last offset is given.
OF_BAGS = ("_embedding_bag", "_embedding_bag_forward_only")


def to_last_offset(overload: str) -> Callable[..., Any]:
    """The CPU's kernel, without the indices after the last offset."""
    original = torch.library.get_kernel(f"aten::{overload}", "CPU")

    def kernel(keys: torch._C.DispatchKeySet, weight: Tensor, indices: Tensor, offsets: Tensor, *args: Any) -> Any:
        # Behind the offsets: scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx.
        given = args[4:5] == (True,) and offsets.numel() and not weight.requires_grad
        if given and 0 <= (end := int(offsets[-1])) < indices.numel():
            weights = args[3] if args[3] is None else args[3][:end]
            indices, args = indices[:end], (*args[:3], weights, *args[4:])
        return original.call_boxed(keys, weight, indices, offsets, *args)

    return kernel


def binary_cross_entropy_out(x: Tensor, *args: Any, out: Tensor) -> Tensor:
    """The loss of all elements; the CPU's kernel gives that of the first one, and writes the others after it."""
    loss: Tensor = aten.binary_cross_entropy(x, *args)
    return out.resize_(loss.shape).copy_(loss)


@cache
def register() -> torch.library.Library:
    """Register CPU kernels that are missing, and replacements for faulty ones, for the lifetime of the process."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, kernel in KERNELS.items():
        exists = hasattr(aten, name)  # another release may not have the operator
        if exists and not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CPU"):
            library.impl(name, kernel, "CPU")  # type: ignore[no-untyped-call]
    mended = ((INTO_ROWS, in_rows), (FROM_ROWS, from_rows), (OF_BAGS, to_last_offset))
    with warnings.catch_warnings():  # of replaced kernels, for each
        warnings.simplefilter("ignore")
        for names, mend in mended if hasattr(torch.library, "get_kernel") else ():
            for name in names:
                library.impl(name, mend(name), "CPU", with_keyset=True)  # type: ignore[no-untyped-call]
        library.impl("binary_cross_entropy.out", binary_cross_entropy_out, "CPU")  # type: ignore[no-untyped-call]
    return library
