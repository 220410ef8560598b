"""`scatter_reduce` with "prod" for int64. Torch has no such kernel on mps: no GPU multiplies 64 bits atomically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ..runtime import rows
from ..runtime.layout import launch_elements, layout_over
from ..runtime.operands import require_device
from ..runtime.outputs import empty_results, out_form
from ..runtime.rows import short_launches
from ..runtime.shader import Shader
from ..runtime.signatures import keep, plans

_shader = Shader(__file__)
_aten = torch.ops.aten
# The 64-bit numbers that describe a partial product, as in the Metal source.
_STATE_WORDS = 2


def scatter_product(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """`scatter_reduce.two` with "prod" for int64; exact, because products wrap.

    An index out of range changes nothing and gives torch.AcceleratorError at the next synchronisation, from torch 2.11
    on.
    """
    if index.dtype == torch.int32:
        index = index.long()
    signature = (
        (_plan, dim, self.dtype, self.shape, self.stride(), self.get_device()),
        (index.dtype, index.shape, index.stride(), index.get_device()),
        (src.dtype, src.shape, src.stride(), src.get_device()),
    )
    plan = plans.get(signature) or keep(signature, _plan(self, index, src, dim))
    result = self.clone(memory_format=torch.contiguous_format)
    if plan.sources:
        _multiply(result, index, src, plan, include_self)
    return result


class _Plan(NamedTuple):
    """The layout of index, sources and results, and what goes with it: casts, bits, how many sources and results."""

    layout: list[int]
    bounds: list[int]  # step and size of the dimension, the first source and the end
    casts: dict[int, str] | None
    kernel: str
    sources: int
    results: int


def _plan(self: torch.Tensor, index: torch.Tensor, src: torch.Tensor, dim: int) -> _Plan:
    """Raise what the CPU raises."""
    if not _fits(self, dim, index, src):
        empty_results(_aten.scatter_reduce.two, [self, dim, index, src, "prod"], torch.device("meta"))
    require_device(self, {"index": index, "src": src}, "scatter_reduce")
    if src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    into, index, src = (x.reshape(1) if x.dim() == 0 else x for x in (self, index, src))
    strides, dim = torch.empty(into.shape, device="meta").stride(), dim % into.dim()
    places = (*strides[:dim], 0, *strides[dim + 1 :])
    layout = layout_over(index.shape, (index.stride(), src.stride(), places))
    bounds = [strides[dim], into.shape[dim], 0, index.numel()]
    bits, casts = (32, {4: "int32"}) if layout.fits_32_bits else (64, None)
    return _Plan(layout.packed, bounds, casts, f"add_logarithms_{bits}", index.numel(), into.numel())


def scatter_product_(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """`scatter_reduce_.two`."""
    return self.copy_(scatter_product(self, dim, index, src, reduce, include_self=include_self))


def _fits(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> bool:
    """Whether nothing is to be refused. What does not fit goes to the meta kernel: its first call loads sympy."""
    sizes, of_self, of_src = index.shape, self.shape, src.shape
    count = len(sizes)
    if not (index.dtype == torch.int64 and 0 < count == len(of_self) == len(of_src) and -count <= dim < count):
        return False
    along = dim % count
    for d in range(count):
        if sizes[d] > of_src[d]:
            return False
        if d != along and sizes[d] > of_self[d]:
            return False
    return True


scatter_product_out = out_form(scatter_product, "scatter_reduce.two_out")


def _multiply(result: torch.Tensor, index: torch.Tensor, src: torch.Tensor, plan: _Plan, include_self: bool) -> None:
    """Multiply the sources into `result`, which is contiguous."""
    layout, bounds, casts, name, sources, elements = plan
    device = result.device
    known = torch.zeros((elements, _STATE_WORDS), dtype=torch.int64, device=device)
    kernel = _shader.kernel(name, device)
    if sources <= rows.MOST_CONTENDED_ADDITIONS:
        launch_elements(kernel, sources, index, src, known, bounds, layout, arg_casts=casts, reports=True)
    else:
        for part in short_launches(sources, 1, most=rows.MOST_CONTENDED_ADDITIONS):
            operands = (index, src, known, [*bounds[:2], part.start, part.stop], layout)
            launch_elements(kernel, part.stop - part.start, *operands, arg_casts=casts, reports=True)
    multiply = _shader.kernel("multiply_powers", device)
    launch_elements(multiply, elements, result, known, elements, int(include_self))


def is_product_of_int64(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, **options: object
) -> bool:
    """Whether torch has no kernel for the call on mps."""
    return self.dtype == torch.int64 and reduce == "prod"


KERNELS: tuple[tuple[str, Callable[..., Any]], ...] = ()
OVERRIDES = (
    ("aten::scatter_reduce.two", scatter_product, is_product_of_int64),
    ("aten::scatter_reduce_.two", scatter_product_, is_product_of_int64),
    ("aten::scatter_reduce.two_out", scatter_product_out, is_product_of_int64),
)
