"""Products of matrices of 8-bit integers, summed in 32 bits; others that torch lacks are composed beside them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.operands import require_device
from ..runtime.rows import rows_in, short_launches
from ..runtime.shader import METAL_TYPES, Shader
from .sparse import sspaddmm_out
from .whole_numbers import WHOLE, addr, addr_out, are_refused, linear

_shader = Shader(__file__)
_TILE, _SIDE = 64, 16


def int_mm_out(self: torch.Tensor, mat2: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`_int_mm.out`: int8 or uint8 times int8, exact as long as the sums fit into 32 bits."""
    shape = _check_operands(self, mat2)
    if out.dtype != torch.int32 or out.shape != shape or not out.is_contiguous():
        _refuse_result(out, shape)
    require_device(self, {"mat2": mat2, "out": out}, "_int_mm")
    return _multiply(self, mat2, out)


def int_mm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """`_int_mm`, a new tensor."""
    shape = _check_operands(self, mat2)
    require_device(self, {"mat2": mat2}, "_int_mm")
    return _multiply(self, mat2, torch.empty_strided(shape, (shape[1], 1), dtype=torch.int32, device=self.device))


def _multiply(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    inner, count = right.shape
    if not inner:
        return out.zero_()  # an empty operand may begin behind the end of its memory
    if out.numel():
        kernel = _shader.kernel(f"int_mm_{METAL_TYPES[left.dtype]}", left.device)
        for part in short_launches(out.shape[0], inner * count, _TILE):
            rows = part.stop - part.start
            sizes = [rows, count, inner, *left.stride(), *right.stride()]
            threads = (-(-count // _TILE) * _SIDE, -(-rows // _TILE) * _SIDE)
            kernel(*rows_in(part, out, left), right, sizes, threads=threads, group_size=(_SIDE, _SIDE))
    return out


def _check_operands(left: torch.Tensor, right: torch.Tensor) -> tuple[int, int]:
    """The shape of the product. Raises what the CPU raises."""
    sizes, others = left.shape, right.shape
    narrow = left.dtype in (torch.int8, torch.uint8) and right.dtype == torch.int8
    if narrow and len(sizes) == len(others) == 2 and sizes[1] == others[0]:
        return sizes[0], others[1]
    _require(left.dim() == 2, f"Expected self to be of dimension 2 but got {left.dim()}")
    if right.dim() == 1:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    _require(right.dim() == 2, f"Expected mat2 to be of dimension 2 but got {right.dim()}")
    _require(sizes[1] == others[0], f"self.size(1) needs to match mat2.size(0) but got {sizes[1]} and {others[0]}")
    _require(left.dtype in (torch.int8, torch.uint8), f"Expected self dtype to be int8 or uint8 but got {left.dtype}")
    raise RuntimeError(f"int_mm_out_mps: Expected mat2 dtype to be of type int8 but got {right.dtype}")


def _refuse_result(out: torch.Tensor, shape: Sequence[int]) -> None:
    _require(out.dtype == torch.int32, f"Expected result dtype to be of type kInt but got {out.dtype}")
    for d, size in enumerate(shape):
        found = out.shape[d] if d < out.dim() else 0
        _require(found == size, f"Expected result.size({d}) to be {size} but got {found}")
    _require(out.dim() == 2, f"Expected result to be of dimension 2 but got {out.dim()}")
    _require(out.is_contiguous(), "Expected result to be contiguous.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(f"int_mm_out_mps: {message}")


KERNELS = (("aten::_int_mm", int_mm), ("aten::_int_mm.out", int_mm_out))
SPARSE = (("aten::sspaddmm.out", sspaddmm_out),)
OVERRIDES = (
    ("aten::linear", linear, WHOLE),
    ("aten::addr", addr, are_refused),
    ("aten::addr.out", addr_out, are_refused),
)
