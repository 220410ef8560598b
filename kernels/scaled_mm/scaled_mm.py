"""Products of matrices of 8-bit floats, summed in float32 and scaled by one number or by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..runtime.operands import require_device
from ..runtime.outputs import refuse_internal_overlap, refuse_overlap, resize_output
from ..runtime.rows import short_launches
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

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


# Recipes of both operands, whether a scale is swizzled, and the dimensions of the inner size.
_Recipes = tuple[tuple[int, ...], tuple[int, ...], bool, tuple[int, ...]]


class _Plan(NamedTuple):
    """A checked product."""

    kernel: str  # empty for results of a dtype that the CPU casts sums to
    shape: tuple[int, int]
    strides: tuple[int, ...]  # of the output if it is ready, else of a new result
    is_ready: bool  # whether an output is given, and has this shape
    layout: list[int]  # ends with whether there are scales by row, by column, a bias, and a scale of the result


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
        return _Plan("", shape, strides, is_ready, [])
    formats = _FORMATS[left.dtype], _FORMATS[right.dtype]
    if dtype not in _RESULTS or (formats[0] != formats[1] and any(name.endswith("uz") for name in formats)):
        dtypes = f"{left.dtype} and {right.dtype} into {dtype}"
        raise NotImplementedError(f"_scaled_mm is not implemented for {dtypes} on mps")
    divides = scale_result is not None and dtype in _FORMATS
    switches = [int(x) for x in (scale_a.numel() > 1, scale_b.numel() > 1, bias is not None, divides)]
    layout = [left.shape[1], *left.stride(), *right.stride(), *strides, *switches]
    return _Plan(f"scaled_mm_{formats[0]}_{formats[1]}_{_RESULTS[dtype]}", shape, strides, is_ready, layout)


def _product(
    given: Sequence[Any], dtype: torch.dtype | None, recipes: _Recipes | None = None, out: torch.Tensor | None = None
) -> torch.Tensor:
    """A new result, or the one in `out`. `given`: the tensors of `_scaled_mm`, None for those that are not given."""
    if out is None:
        dtype = given[0].dtype if dtype is None else dtype
        plan = planned(_plan, (*given, None), dtype, recipes)
        return _multiply(
            plan, given, torch.empty_strided(plan.shape, plan.strides, dtype=dtype, device=given[0].device)
        )
    plan = planned(_plan, (*given, out), out.dtype, recipes)
    if dtype is not None and dtype != out.dtype:
        raise ValueError("out_dtype must match output matrix type")
    if plan.kernel:
        refuse_overlap(out, *given[:4])
    if not plan.is_ready:
        resize_output(out, plan.shape)
        plan = planned(_plan, (*given, out), out.dtype, recipes)
    return _multiply(plan, given, out)


def _multiply(plan: _Plan, given: Sequence[Any], out: torch.Tensor) -> torch.Tensor:
    """Write the product to `out`, which is checked and of its shape."""
    name, (height, width), _, _, layout = plan
    left, right, scale_a, scale_b, bias, scale_result = given
    if not name:
        return out.copy_(scaled_mm(left, right, scale_a, scale_b, bias, scale_result, torch.float32))
    if height and width:
        # Metal has no 8-bit floats: kernels read bytes.
        left, right = left.view(torch.uint8), right.view(torch.uint8)
        result = out.view(torch.uint8) if out.dtype in _FORMATS else out
        # Another number is passed where there is none: making one is a launch.
        addends = scale_b if bias is None else _as_float_vector(bias)
        divisor = scale_result.to(torch.float32) if layout[-1] else scale_b
        kernel = _shader.kernel(name, out.device)
        of_rows, scales = scale_a.contiguous(), (scale_b.contiguous(), addends.contiguous(), divisor)
        for part in short_launches(height, right.numel(), _TILE):
            rows, of_part = part.stop - part.start, (result, left, of_rows)
            if rows < height:
                of_part = result[part], left[part], of_rows[part] if layout[-4] else of_rows
            operands = (*of_part[:2], right, of_part[2], *scales, [rows, width, *layout])
            threads = (-(-width // _TILE) * _SIDE, -(-rows // _TILE) * _SIDE)
            kernel(*operands, threads=threads, group_size=(_SIDE, _SIDE))
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
    recipes = tuple(recipe_a), tuple(recipe_b), any(swizzle_a) or any(swizzle_b), tuple(contraction_dim)
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
    recipes = tuple(recipe_a), tuple(recipe_b), any(swizzle_a) or any(swizzle_b), tuple(contraction_dim)
    return _product((self, mat2, _only(scale_a), _only(scale_b), bias, None), out_dtype, recipes)


def _only(scales: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The scale, or None unless there is exactly one."""
    return scales[0] if len(scales) == 1 else None


def _check_recipes(
    left: torch.Tensor, right: torch.Tensor, scale_a: Any, scale_b: Any, bias: torch.Tensor | None, recipes: _Recipes
) -> None:
    """Raise what the CPU raises."""
    recipe_a, recipe_b, is_swizzled, contraction_dim = recipes
    _check_contraction(left, right, contraction_dim)
    if is_swizzled:
        raise ValueError("MPS does not support swizzle.")
    if scale_a is None or scale_b is None or recipe_a != recipe_b or recipe_a not in ((_TENSORWISE,), (_ROWWISE,)):
        raise _invalid_scaling()
    if bias is not None and right.dim() == 2 and bias.numel() != right.shape[1]:
        raise ValueError(f"Bias must be size {right.shape[1]} but got {bias.numel()}")
    if recipe_a == (_TENSORWISE,) and (scale_a.numel() > 1 or scale_b.numel() > 1):
        raise _invalid_scaling()


def _as_float_vector(bias: torch.Tensor) -> torch.Tensor:
    """The bias in float32 and one dimension; without a call of torch if it is so already."""
    return bias if bias.dim() == 1 and bias.dtype == torch.float32 else bias.reshape(-1).to(torch.float32)


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
