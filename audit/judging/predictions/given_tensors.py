"""Models of host code that mishandles tensors it is given: outputs, indices, weights, accumulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from ...model.nested import leaves
from ..arguments import storage_of
from .graphs import BATCH_NORMS
from .prediction import ContiguousWrite, Model, Prediction, ReplacedResult, ScaledMemory, Ulp
from .real_functions import gamma_gradient

aten = torch.ops.aten
# Whose output is written as if it were in rows.
IN_ROWS = (
    *("index_select", "avg_pool2d", "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward"),
    *("linalg_solve_triangular", "_standard_gamma_grad", "adaptive_max_pool2d"),
)
AVERAGES_BACKWARD = ("avg_pool2d_backward", "_adaptive_avg_pool2d_backward")
# The outputs of the overloads below, in the order of their results.
OUTPUTS = ("output", "total_weight", "values", "out", "indices", "buffer")
# Of the kernel of cholesky: matrices of more rows are factorized in blocks.
ROWS_OF_A_BLOCK, THREADS_OF_A_GROUP = 32, 256


def _kept(overload: str) -> Model:
    """Given outputs keep their old contents; that of an adaptive average also its old shape."""

    def model(
        ulp: Ulp, *args: Any, out: Tensor | None = None, **named: Any
    ) -> list[Tensor | ReplacedResult | None] | None:
        named |= {} if out is None else {"out": out}
        outputs = [named.pop(name) for name in OUTPUTS if name in named]
        if not outputs:
            return None
        results = leaves(getattr(aten, overload)(*args, **named))
        reshaped = ReplacedResult if overload == "adaptive_avg_pool2d" else lambda old: None
        pairs = zip(outputs, results, strict=True)
        return [old if old.shape == new.shape else reshaped(old) for old, new in pairs]

    return model


def _in_rows(overload: str) -> Model:
    """The result is written contiguously into the memory of an output with other strides; the rest of it is unchanged.

    The output of a pooling backward is zero before.
    """

    def model(ulp: Ulp, *args: Any, out: Tensor | None = None, **named: Any) -> ContiguousWrite | None:
        output: Tensor | None = named.pop("grad_input", out)
        if output is None:
            return None
        named.pop("indices", None)
        result: Tensor = next(leaves(getattr(aten, overload)(*args, **named)))
        if output.element_size() < result.element_size():
            return None
        before = torch.zeros_like(output) if "_pool" in overload and overload.endswith("_backward") else output
        return ContiguousWrite(result, before) if result.shape == output.shape else None

    return model


def _restrided(overload: str) -> Model:
    """A given output is contiguous after the call, in the same memory, whatever its strides were."""

    def model(ulp: Ulp, *args: Any, out: Tensor | None = None, **named: Any) -> ContiguousWrite | None:
        result: Tensor = getattr(aten, overload)(*args, **named)
        return None if out is None or out.shape != result.shape else ContiguousWrite(result, out, restrides=True)

    return model


def _in_channels_last(overload: str) -> Model:
    """The result of a channels_last input is written as channels_last, even if the given output is contiguous."""

    def model(
        ulp: Ulp,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *rest: Any,
        out: Tensor | None = None,
        **named: Any,
    ) -> Any:
        if out is None or out.shape != input.shape or input.dim() != 4 or input.is_contiguous():
            return None
        is_last = [tensor.is_contiguous(memory_format=torch.channels_last) for tensor in (input, out)]
        if is_last != [True, False]:
            return None
        result = ulp(getattr(aten, overload)(input, weight, None, *rest)[0])
        result = result if bias is None else result + bias.view(-1, 1, 1)
        return ContiguousWrite(result.to(input.dtype).movedim(1, -1), out), None, None

    return model


def saved_statistics(ulp: Ulp, input: Tensor, *args: Any, out: Tensor | None = None, **named: Any) -> Any:
    """A batch norm that does not train leaves the given save_mean and save_invstd without elements."""
    if out is None or not any(argument is False for argument in args):
        return None
    return None, ReplacedResult(input.new_empty(0)), ReplacedResult(input.new_empty(0))


def _read_in_channels_last(overload: str) -> Model:
    """Beside a channels_last input, the memory of the gradient is read as channels_last, whatever its strides."""

    def model(ulp: Ulp, grad: Tensor, input: Tensor, *geometry: Any, **named: Any) -> Tensor | None:
        if input.dim() < 4 or suggest_memory_format(input) is not torch.channels_last:
            return None
        if "_adaptive" in overload and grad.shape[-2] > input.shape[-2]:  # as an average of the gradient
            return None
        memory = storage_of(grad)[grad.storage_offset() :][: grad.numel()]
        if grad.is_contiguous(memory_format=torch.channels_last) or len(memory) < grad.numel():
            return None
        batch, channels, *places = grad.shape
        read = memory.view(batch, *places, channels).movedim(-1, 1)
        return ulp(getattr(aten, overload)(read, input, *geometry, **named))

    return model


def info_of_a_singular_matrix(overload: str) -> Model:
    """`info`, the last result, is 2 for every singular matrix in place of the number of its first zero pivot."""

    def model(ulp: Ulp, *args: Any, **named: Any) -> list[Tensor | None]:
        *others, info = getattr(aten, overload)(*args, **named)
        return [*[None] * len(others), torch.where(info > 0, 2, info)]

    return model


def total_weight(forward: Callable[..., tuple[Tensor, Tensor]]) -> Model:
    """For reductions other than the mean, the total weight is the number of targets, ignored ones included."""

    def model(
        ulp: Ulp, input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignored: int
    ) -> tuple[Tensor, Tensor] | None:
        if reduction == 1 or not target.numel():
            return None
        output, weights = forward(input, target, weight, reduction, ignored)
        return output, torch.full_like(weights, float(target.numel()))

    return model


def addbmm(ulp: Ulp, input: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor | None:
    """Elements after the first add the result's first element in place of the one-element `input`."""
    if input.numel() != 1 or left.shape[1] * right.shape[2] < 2 or input.dtype is not left.dtype:
        return None
    result: Tensor = aten.addbmm(input, left, right, beta=beta, alpha=alpha)
    left = ulp(left) if left.is_floating_point() or left.is_complex() else left
    shifted: Tensor = aten.addbmm(result.flatten()[:1], left, right, beta=beta, alpha=alpha)
    shifted.view(-1)[0] = result.view(-1)[0]
    return shifted


def addbmm_of_none(ulp: Ulp, input: Tensor, left: Tensor, right: Tensor, **factors: Any) -> Tensor | None:
    """Zero for an empty batch; `input` is not added."""
    return torch.zeros(left.shape[1], right.shape[2], dtype=input.dtype) if not len(left) else None


def maxima_of_windows(
    ulp: Ulp,
    grad: Tensor,
    input: Tensor,
    *geometry: Any,
    out: Tensor | None = None,
    grad_input: Tensor | None = None,
    **named: Any,
) -> Tensor | ContiguousWrite:
    """The maxima are searched again; the given indices are ignored. Into a given output it writes rows."""
    names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    given = dict(zip((*names, "indices"), geometry, strict=False)) | named
    result = _max_pool_backward(grad, input, tuple(given[name] for name in names))
    return _into(out if grad_input is None else grad_input, result)


def _into(output: Tensor | None, result: Tensor) -> Tensor | ContiguousWrite:
    is_written = output is not None and output.shape == result.shape
    return ContiguousWrite(result, torch.zeros_like(result)) if is_written else result


def maxima_of_adaptive_windows(
    ulp: Ulp,
    grad: Tensor,
    input: Tensor,
    indices: Tensor,
    *,
    out: Tensor | None = None,
    grad_input: Tensor | None = None,
) -> Tensor | ContiguousWrite | None:
    """As `maxima_of_windows`, in windows of equal size."""
    pairs = list(zip(input.shape[-2:], grad.shape[-2:], strict=True))
    if any(wanted > size or not wanted for size, wanted in pairs):
        return None
    steps = [size // wanted for size, wanted in pairs]
    windows = [size - (wanted - 1) * step for (size, wanted), step in zip(pairs, steps, strict=True)]
    result = _max_pool_backward(grad, input, (windows, steps, [0, 0], [1, 1], False))
    return _into(out if grad_input is None else grad_input, result)


def _max_pool_backward(grad: Tensor, input: Tensor, geometry: tuple[Any, ...]) -> Tensor:
    places = aten.max_pool2d_with_indices(input.contiguous(), *geometry)[1]
    zeros = torch.zeros_like(input, memory_format=torch.contiguous_format).flatten(-2)
    return zeros.scatter_add(-1, places.flatten(-2), grad.flatten(-2)).view(input.shape)


def layer_norm(
    ulp: Ulp, input: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ReplacedResult, ReplacedResult] | None:
    """The memory of weight and bias is read in the input's dtype; mean and rstd are returned in that dtype."""
    if all(parameter is None or parameter.dtype is input.dtype for parameter in (weight, bias)):
        return None

    def read(parameter: Tensor | None) -> Tensor | None:
        if parameter is None or parameter.dtype is input.dtype or parameter.element_size() < input.element_size():
            return parameter
        return parameter.contiguous().flatten().view(input.dtype)[: parameter.numel()].view(parameter.shape)

    normal, mean, deviation = aten.native_layer_norm(input.float(), shape, None, None, eps)
    scale, shift = read(weight), read(bias)
    result = ulp(normal) if scale is None else ulp(normal) * scale
    result = result if shift is None else result + shift
    return result.to(input.dtype), ReplacedResult(mean.to(input.dtype)), ReplacedResult(deviation.to(input.dtype))


def cholesky_ex(ulp: Ulp, input: Tensor, *, upper: bool = False, **named: Any) -> tuple[Tensor, Tensor] | None:
    """Complex matrices are read as real ones of the same shape, so that half of the batch's memory is factorized."""
    rows = input.shape[-1]
    if not input.is_complex() or not 0 < rows <= ROWS_OF_A_BLOCK:
        return None
    in_memory = input.mT.contiguous()
    parts = torch.view_as_real(in_memory).flatten()
    tiles = parts[: parts.numel() // 2].view(-1, rows, rows)
    failed = [_factorize(ulp, tile if upper else tile.mT) for tile in tiles]
    factor = in_memory.mT.triu() if upper else in_memory.mT.tril()
    return factor, torch.tensor(failed, dtype=torch.int32).view(input.shape[:-2])


def _factorize(ulp: Ulp, tile: Tensor) -> int:
    """Factorize in place as the kernel, whose first thread stops at a non-positive pivot. Return the pivot's number."""
    values, failed = tile.clone(), 0
    for step in range(len(values)):
        computed_row = values[step, :step]
        if not failed:
            pivot = values[step, step] - ulp(computed_row * computed_row).sum()
            failed = step + 1 if pivot <= 0 else 0
            values[step, step] = values[step, step] if failed else ulp(pivot.sqrt())
        below = values[step + 1 + bool(failed) :]  # the next row is the first thread's
        below[:, step] = ulp(below[:, step] - below[:, :step] @ computed_row) / values[step, step]
    written = torch.arange(values.numel()).view(values.shape) % THREADS_OF_A_GROUP > 0
    tile.copy_(torch.where(written, values, tile) if failed else values)
    return failed


def first_system(ulp: Ulp, matrices: Tensor, sides: Tensor, *options: Any, **named: Any) -> list[Tensor | None] | None:
    """With one right-hand side for a batch of matrices, only the first system is solved; other solutions are zero."""
    if sides.dim() >= matrices.dim() or matrices.dim() < 3 or sides.shape == matrices.shape[:-1]:
        return None
    all_of = aten._linalg_solve_ex(matrices, sides, *options, **named)[0]
    first = (0,) * (matrices.dim() - 2)
    solution = torch.zeros_like(all_of)
    solution[first] = all_of[first]
    return [solution, None, None, None]


def without_lazy_signs(ulp: Ulp, matrix: Tensor, sides: Tensor, **named: Any) -> Tensor | None:
    """The lazy negation of a contiguous tensor is ignored; a tensor that is not contiguous is copied first."""
    ignored = [tensor.is_neg() and tensor.is_contiguous() for tensor in (matrix, sides)]
    stored = [torch._neg_view(x) if is_ignored else x for x, is_ignored in zip((matrix, sides), ignored, strict=True)]
    return ulp(aten.linalg_solve_triangular(*stored, **named)) if any(ignored) else None


def gamma_gradient_in_rows(ulp: Ulp, input: Tensor, output: Tensor) -> ReplacedResult | None:
    """The result has the shape of the first tensor; as many elements of the second's memory are read, beyond it too."""
    memory = storage_of(output)[output.storage_offset() :] if output.is_contiguous() else output.flatten()
    if len(memory) < input.numel():
        return None
    read = output if input.shape == output.shape else memory[: input.numel()].view(input.shape)
    return ReplacedResult(gamma_gradient(ulp, input, read))


def first_of_its_storage(overload: str) -> Model:
    """A 0-dim tensor that is a view is read at the beginning of its storage."""

    def first(argument: Any) -> Any:
        is_number = isinstance(argument, Tensor) and not argument.dim() and argument.storage_offset()
        return argument.as_strided((), (), 0) if is_number else argument

    def model(ulp: Ulp, *args: Any, **named: Any) -> Tensor | None:
        read = [first(argument) for argument in args]
        if all(mine is argument for mine, argument in zip(read, args, strict=True)):
            return None
        result: Tensor = getattr(aten, overload)(*read, **named)
        return result

    return model


def pad_backward(overload: str) -> Model:
    """The memory of both gradients is read and written in the input's dtype; the rest of the result is zero."""

    def model(
        ulp: Ulp,
        grad: Tensor,
        input: Tensor,
        padding: Sequence[int],
        *,
        out: Tensor | None = None,
        grad_input: Tensor | None = None,
    ) -> Tensor | None:
        dtype = torch.int8 if input.dtype is torch.bool else input.dtype
        read = grad.contiguous().flatten().view(torch.uint8)[: grad.numel() * dtype.itemsize]
        if grad_input is None or grad.dtype is dtype or len(read) < grad.numel() * dtype.itemsize:
            return None
        numbers = read.view(dtype).view(grad.shape).to(torch.complex128 if dtype.is_complex else torch.float64)
        result: Tensor = getattr(aten, overload)(numbers, numbers.new_empty(input.shape), padding)
        rounded = result.to(dtype) if dtype.is_floating_point or dtype.is_complex else result.long().to(dtype)
        written = rounded.flatten().view(torch.uint8)
        memory = torch.zeros(input.numel() * grad.itemsize, dtype=torch.uint8)
        memory[: len(written)] = written
        return memory.view(grad.dtype).view(input.shape)

    return model


def unwritten_info(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """All integers where the CPU reports no error: they hold what was in their memory."""
    return (right == 0) & (not values.is_floating_point())


def conjugated(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Complex numbers that are conjugates of the CPU's, up to rounding."""
    return torch.isclose(values, right.conj(), 1e-4, 0.0) if right.is_complex() else torch.zeros_like(right).bool()


def unscale(ulp: Ulp, tensors: list[Tensor], found_inf: Tensor, factor: Tensor) -> list[ScaledMemory | None]:
    """Each tensor's memory is multiplied as if it were contiguous."""
    return [*(ScaledMemory(factor, tensor) for tensor in tensors), None]


KEEPING = (
    *("nll_loss_forward", "nll_loss2d_forward", "median", "nanmedian", "adaptive_max_pool2d", "adaptive_avg_pool2d"),
    "log_sigmoid_forward",
)

PAD_BACKWARDS = [f"{mode}_pad{dims}d_backward" for mode in ("reflection", "replication") for dims in (1, 2, 3)]

GIVEN_TENSORS = (
    Prediction("results-left-as-they-were", {f"aten::{name}": _kept(name) for name in KEEPING}),
    Prediction("results-in-rows", {f"aten::{name}": _in_rows(name) for name in IN_ROWS}),
    Prediction("outputs-made-contiguous", {f"aten::{name}": _restrided(name) for name in ("avg_pool2d", "avg_pool3d")}),
    Prediction("lists-scaled-in-rows", {"aten::_amp_foreach_non_finite_check_and_unscale": unscale}),
    Prediction("results-in-channels-last", {f"aten::{name}": _in_channels_last(name) for name in BATCH_NORMS}),
    Prediction("statistics-left-empty", {f"aten::{name}": saved_statistics for name in BATCH_NORMS}),
    Prediction(
        "gradients-read-in-channels-last",
        {f"aten::{name}": _read_in_channels_last(name) for name in AVERAGES_BACKWARD},
    ),
    Prediction(
        "info-is-two",
        {
            f"aten::{name}": info_of_a_singular_matrix(name)
            for name in ("linalg_lu_factor_ex", "linalg_inv_ex", "_linalg_solve_ex")
        },
    ),
    Prediction("info-left-unwritten", where=unwritten_info, with_calls=frozenset({"aten::linalg_lu_factor_ex"})),
    Prediction(
        "total-weight-is-the-size",
        {f"aten::{name}": total_weight(getattr(aten, name)) for name in ("nll_loss_forward", "nll_loss2d_forward")},
    ),
    Prediction("addbmm-reads-what-it-wrote", {"aten::addbmm": addbmm}),
    Prediction("no-matrix-leaves-zero", {"aten::addbmm": addbmm_of_none}),
    Prediction(
        "maxima-found-again",
        {
            "aten::max_pool2d_with_indices_backward": maxima_of_windows,
            "aten::adaptive_max_pool2d_backward": maxima_of_adaptive_windows,
        },
    ),
    Prediction("first-system-alone", {"aten::_linalg_solve_ex": first_system}),
    Prediction("lazy-signs-ignored", {"aten::linalg_solve_triangular": without_lazy_signs}),
    Prediction("cholesky-of-complex-numbers-as-two", {"aten::linalg_cholesky_ex": cholesky_ex}),
    Prediction(
        "first-of-a-storage", {f"aten::{name}": first_of_its_storage(name) for name in ("add", "sub", "mul", "div")}
    ),
    Prediction(
        "results-conjugated", where=conjugated, with_calls=frozenset({"aten::addmm", "aten::baddbmm", "aten::pow"})
    ),
    Prediction("gamma-gradients-in-rows", {"aten::_standard_gamma_grad": gamma_gradient_in_rows}),
    Prediction("gradients-in-the-dtype-of-the-input", {f"aten::{name}": pad_backward(name) for name in PAD_BACKWARDS}),
    Prediction("parameters-read-in-another-dtype", {"aten::native_layer_norm": layer_norm}),
)
