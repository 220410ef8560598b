"""Products of matrices of 8-bit floats, summed in float32 and scaled by one number or by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..runtime import rows
from ..runtime.operands import require_device
from ..runtime.outputs import refuse_internal_overlap, refuse_overlap, resize_output
from ..runtime.rows import short_launches
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import keep, plans

_shader = Shader(__file__)
_TILE, _SIDE = 64, 16
_FORMATS = {
    torch.float8_e4m3fn: "e4m3fn",
    torch.float8_e5m2: "e5m2",
    torch.float8_e4m3fnuz: "e4m3fnuz",
    torch.float8_e5m2fnuz: "e5m2fnuz",
}
_RESULTS = {
    **{dtype: METAL_TYPES[dtype] for dtype in (torch.float32, torch.float16, torch.bfloat16)},
    torch.float8_e4m3fn: "e4m3fn",
    torch.float8_e5m2: "e5m2",
}
# The values of torch.nn.functional.ScalingType that the CPU supports.
_TENSORWISE, _ROWWISE = 0, 1


def scaled_mm_out(
    self: torch.Tensor,
    mat2: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`_scaled_mm.out`: `scale_result` divides only 8-bit results, as on the CPU."""
    return _product((self, mat2, scale_a, scale_b, bias, scale_result), out_dtype, out=out)


def scaled_mm(
    self: torch.Tensor,
    mat2: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """`_scaled_mm`, a new tensor of `out_dtype`, if given."""
    return _product((self, mat2, scale_a, scale_b, bias, scale_result), out_dtype)


# Recipes of both operands, how the scales of both are swizzled, and the dimensions of the inner size.
_Recipes = tuple[tuple[int, ...], ...]


class _Plan(NamedTuple):
    """A checked product."""

    kernel: str  # empty for results of a dtype that the CPU casts sums to
    shape: tuple[int, int]
    strides: tuple[int, ...]  # of the output if it is ready, else of a new result
    is_ready: bool  # whether an output is given, and has this shape
    layout: list[int]  # ends with whether there are scales by row, by column, a bias, and a scale of the result
    numbers: list[int]  # of the kernel for all rows
    threads: tuple[int, int]  # for all rows
    products: int
    is_narrow: bool  # whether the result has 8 bits
    has_vector: bool  # whether the bias is read as it is


def _plan(
    left: torch.Tensor,
    right: torch.Tensor,
    scale_a: Any,
    scale_b: Any,
    bias: torch.Tensor | None,
    scale_result: torch.Tensor | None,
    out: torch.Tensor | None,
    *numbers: Any,
) -> _Plan:
    """The plan for a result of this dtype by these recipes, `numbers`. Raises what the CPU raises.

    `scale_a`, `scale_b`: tensors; None where a list of scales has not exactly one.
    """
    dtype, recipes = numbers
    if recipes is not None:
        _check_recipes(left, right, scale_a, scale_b, bias, recipes)
    _check_operands(left, right, bias)
    _check_scales(left, right, scale_a, scale_b)
    given = {"mat2": right, "scale_a": scale_a, "scale_b": scale_b, "bias": bias, "scale_result": scale_result}
    require_device(left, {**given, "out": out}, "_scaled_mm")
    shape = left.shape[0], right.shape[1]
    strides: tuple[int, ...] = (max(shape[1], 1), 1)
    is_ready = out is not None and out.shape == shape
    if out is not None and is_ready:
        refuse_internal_overlap(out)
        strides = out.stride()
    if not (dtype in _RESULTS or dtype in _FORMATS):
        return _Plan("", shape, strides, is_ready, [], [], (0, 0), 0, False, False)
    formats = _FORMATS[left.dtype], _FORMATS[right.dtype]
    if dtype not in _RESULTS or (formats[0] != formats[1] and any(name.endswith("uz") for name in formats)):
        dtypes = f"{left.dtype} and {right.dtype} into {dtype}"
        raise NotImplementedError(f"_scaled_mm is not implemented for {dtypes} on mps")
    divides = scale_result is not None and dtype in _FORMATS
    switches = [int(x) for x in (scale_a.numel() > 1, scale_b.numel() > 1, bias is not None, divides)]
    layout = [left.shape[1], *left.stride(), *right.stride(), *strides, *switches]
    kernel = f"scaled_mm_{formats[0]}_{formats[1]}_{_RESULTS[dtype]}"
    has_vector = bias is not None and bias.dim() == 1 and bias.dtype == torch.float32
    of_launch = [*shape, *layout], _threads(*shape), shape[0] * right.numel()
    return _Plan(kernel, shape, strides, is_ready, layout, *of_launch, dtype in _FORMATS, has_vector)


def _threads(height: int, width: int) -> tuple[int, int]:
    return -(-width // _TILE) * _SIDE, -(-height // _TILE) * _SIDE


def _planned(given: Sequence[Any], dtype: torch.dtype, recipes: _Recipes | None, out: torch.Tensor | None) -> _Plan:
    """The plan of the signature, without strides where a contiguous copy is read."""
    left, right, scale_a, scale_b, bias, scale_result = given
    signature = (
        (_plan, left.dtype, left.shape, left.stride(), left.get_device(), dtype, recipes),
        (right.dtype, right.shape, right.stride(), right.get_device()),
        None if scale_a is None else (scale_a.dtype, scale_a.shape, scale_a.get_device()),
        None if scale_b is None else (scale_b.dtype, scale_b.shape, scale_b.get_device()),
        None if bias is None else (bias.dtype, bias.shape, bias.get_device()),
        None if scale_result is None else scale_result.get_device(),
        None if out is None else (out.shape, out.stride(), out.get_device()),
    )
    return plans.get(signature) or keep(signature, _plan(*given, out, dtype, recipes))


def _product(
    given: Sequence[Any], dtype: torch.dtype | None, recipes: _Recipes | None = None, out: torch.Tensor | None = None
) -> torch.Tensor:
    """A new result, or the one in `out`. `given`: the tensors of `_scaled_mm`, None for those that are not given."""
    if out is None:
        dtype = given[0].dtype if dtype is None else dtype
        plan = _planned(given, dtype, recipes, None)
        return _multiply(
            plan, given, torch.empty_strided(plan.shape, plan.strides, dtype=dtype, device=given[0].device)
        )
    plan = _planned(given, out.dtype, recipes, out)
    if dtype is not None and dtype != out.dtype:
        raise ValueError("out_dtype must match output matrix type")
    if plan.kernel:
        refuse_overlap(out, *given[:4])
    if not plan.is_ready:
        resize_output(out, plan.shape)
        plan = _planned(given, out.dtype, recipes, out)
    return _multiply(plan, given, out)


def _multiply(plan: _Plan, given: Sequence[Any], out: torch.Tensor) -> torch.Tensor:
    """Write the product to `out`, which is checked and of its shape."""
    name, (height, width), _, _, layout, numbers, threads, products, is_narrow, has_vector = plan
    left, right, row_scale, scale_b, bias, scale_result = given
    if not name:
        return out.copy_(scaled_mm(left, right, row_scale, scale_b, bias, scale_result, torch.float32))
    if not (height and width):
        return out
    # Metal has no 8-bit floats: kernels read bytes.
    left, right = left.view(torch.uint8), right.view(torch.uint8)
    result = out.view(torch.uint8) if is_narrow else out
    row_scale, column_scale = row_scale.contiguous(), scale_b.contiguous()
    # Another number is passed where there is none: making one is a launch.
    addends = column_scale
    if bias is not None:
        addends = (bias if has_vector else bias.reshape(-1).to(torch.float32)).contiguous()
    scales = column_scale, addends, scale_result.to(torch.float32) if layout[-1] else column_scale
    kernel = _shader.kernel(name, out.device)
    if products <= rows.MOST_PRODUCTS:
        kernel(result, left, right, row_scale, *scales, numbers, threads=threads, group_size=(_SIDE, _SIDE))
        return out
    for part in short_launches(height, right.numel(), _TILE):
        count, of_rows = part.stop - part.start, row_scale[part] if layout[-4] else row_scale
        operands = (result[part], left[part], right, of_rows, *scales, [count, width, *layout])
        kernel(*operands, threads=_threads(count, width), group_size=(_SIDE, _SIDE))
    return out


def scaled_mm_v2_out(
    self: torch.Tensor,
    mat2: torch.Tensor,
    scale_a: Sequence[torch.Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[torch.Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: torch.Tensor | None,
    out_dtype: torch.dtype | None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`_scaled_mm_v2.out` with the recipes of the CPU: one scale, or one for each row and column."""
    recipes = tuple(recipe_a), tuple(recipe_b), tuple(swizzle_a), tuple(swizzle_b), tuple(contraction_dim)
    return _product((self, mat2, _only(scale_a), _only(scale_b), bias, None), out_dtype, recipes, out)


def scaled_mm_v2(
    self: torch.Tensor,
    mat2: torch.Tensor,
    scale_a: Sequence[torch.Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[torch.Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: torch.Tensor | None,
    out_dtype: torch.dtype | None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """`_scaled_mm_v2`, a new tensor."""
    recipes = tuple(recipe_a), tuple(recipe_b), tuple(swizzle_a), tuple(swizzle_b), tuple(contraction_dim)
    return _product((self, mat2, _only(scale_a), _only(scale_b), bias, None), out_dtype, recipes)


def _only(scales: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The scale, or None unless there is exactly one."""
    return scales[0] if len(scales) == 1 else None


def _check_recipes(
    left: torch.Tensor, right: torch.Tensor, scale_a: Any, scale_b: Any, bias: torch.Tensor | None, recipes: _Recipes
) -> None:
    """Raise what the CPU raises."""
    recipe_a, recipe_b, *swizzles, contraction_dim = recipes
    _check_contraction(left, right, contraction_dim)
    if any(map(any, swizzles)):
        raise ValueError("MPS does not support swizzle.")
    if scale_a is None or scale_b is None or recipe_a != recipe_b or recipe_a not in ((_TENSORWISE,), (_ROWWISE,)):
        raise _invalid_scaling()
    if bias is not None and right.dim() == 2 and bias.numel() != right.shape[1]:
        raise ValueError(f"Bias must be size {right.shape[1]} but got {bias.numel()}")
    if recipe_a == (_TENSORWISE,) and (scale_a.numel() > 1 or scale_b.numel() > 1):
        raise _invalid_scaling()


def _check_operands(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Raise what the CPU raises."""
    sizes, others = left.shape, right.shape
    if len(sizes) != 2 or len(others) != 2:
        raise RuntimeError(f"mat{1 if len(sizes) != 2 else 2} must be a matrix")
    if sizes[1] != others[0]:
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({_by(left)} and {_by(right)})")
    if bias is not None and bias.numel() != others[1]:
        raise RuntimeError(f"Bias must be size {others[1]} but got {bias.numel()}")


def _check_scales(left: torch.Tensor, right: torch.Tensor, row_scale: torch.Tensor, column_scale: torch.Tensor) -> None:
    """Check the scales: two float32 numbers, or a column with one for each row and a row with one for each column."""
    is_narrow = left.dtype in _FORMATS and right.dtype in _FORMATS
    fits = row_scale.numel() == 1 == column_scale.numel() or (
        row_scale.shape == (left.shape[0], 1) and column_scale.shape == (1, right.shape[1])
    )
    if not (is_narrow and fits and row_scale.dtype == column_scale.dtype == torch.float32):
        raise _invalid_scaling()


def _invalid_scaling() -> ValueError:
    return ValueError(
        "Invalid scaling configuration.\n"
        "- TensorWise: a and b are float8, both scales are single float32 numbers.\n"
        "- RowWise: a and b are float8, the scales are float32 of the shapes (rows of a, 1) and (1, columns of b).\n"
    )


def _check_contraction(left: torch.Tensor, right: torch.Tensor, dims: Sequence[int]) -> None:
    at, against = dims if dims else (1, 0)
    if left.dim() == right.dim() == 2 and left.shape[at] != right.shape[against]:
        raise ValueError(f"mat_a and mat_b shapes cannot be multiplied ({_by(left)} and {_by(right)})")


def _by(matrix: torch.Tensor) -> str:
    return "x".join(map(str, matrix.shape))


KERNELS = (
    ("aten::_scaled_mm", scaled_mm),
    ("aten::_scaled_mm.out", scaled_mm_out),
    ("aten::_scaled_mm_v2", scaled_mm_v2),
    ("aten::_scaled_mm_v2.out", scaled_mm_v2_out),
)
