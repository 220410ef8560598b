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
    _check_operands(self, mat2)
    shape = (self.shape[0], mat2.shape[1])
    if out.dtype != torch.int32 or out.shape != shape or not out.is_contiguous():
        _refuse_result(out, shape)
    require_device(self, {"mat2": mat2, "out": out}, "_int_mm")
    if not self.shape[1]:
        return out.zero_()  # an empty operand may begin behind the end of its memory
    if out.numel():
        kernel = _shader.kernel(f"int_mm_{METAL_TYPES[self.dtype]}", self.device)
        for part in short_launches(out.shape[0], mat2.numel(), _TILE):
            rows, columns = part.stop - part.start, out.shape[1]
            sizes = [rows, columns, self.shape[1], *self.stride(), *mat2.stride()]
            threads = [-(-size // _TILE) * _SIDE for size in (columns, rows)]
            kernel(*rows_in(part, out, self), mat2, sizes, threads=threads, group_size=(_SIDE, _SIDE))
    return out


def int_mm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """`_int_mm`, a new tensor."""
    _check_operands(self, mat2)
    out = torch.empty((self.shape[0], mat2.shape[1]), dtype=torch.int32, device=self.device)
    return int_mm_out(self, mat2, out=out)


def _check_operands(left: torch.Tensor, right: torch.Tensor) -> None:
    """Raise what the CPU raises."""
    narrow = left.dtype in (torch.int8, torch.uint8) and right.dtype == torch.int8
    if narrow and left.dim() == right.dim() == 2 and left.shape[1] == right.shape[0]:
        return
    _require(left.dim() == 2, f"Expected self to be of dimension 2 but got {left.dim()}")
    if right.dim() == 1:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    _require(right.dim() == 2, f"Expected mat2 to be of dimension 2 but got {right.dim()}")
    sizes = left.shape[1], right.shape[0]
    _require(sizes[0] == sizes[1], f"self.size(1) needs to match mat2.size(0) but got {sizes[0]} and {sizes[1]}")
    _require(left.dtype in (torch.int8, torch.uint8), f"Expected self dtype to be int8 or uint8 but got {left.dtype}")
    _require(right.dtype == torch.int8, f"Expected mat2 dtype to be of type int8 but got {right.dtype}")


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
