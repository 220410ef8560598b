"""Calls that launch each kind of kernel that an element-wise operator has on mps.

TensorIterator's Metal kernels come in kinds: dense, strided, with one operand repeated over the other on either side,
with one element on either side, with operands of two dtypes, with a result of another dtype, and with several elements
a thread from 2^18 elements on. Which one the host launches follows from shapes, strides and dtypes alone, so the values
are those of the schema's own call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ....registry.files import full_name
from ...model.case import Case
from ..calls.invocation import SchemaCall, overload_of
from ..covering.levels import DTYPE_NAMES
from .case_tensors import accepts, strided_positions, tensors_of, tensors_on_cpu, with_tensors
from .derived import BaseGroup, Factor, in_each_case
from .mixed_dtypes import in_dtype, of_mixed_dtypes

# A matrix, of which one row may be the other operand; further ones in the dtypes that many operators have alone.
ROWS, COLUMNS = 3, 20
MATRICES = ((ROWS, COLUMNS), (5, 8), (2, 30), (4, 6))
MAIN_DTYPES = ("float32", "float16", "int64")
# Three elements more than the host needs for several elements a thread.
SEVERAL_A_THREAD = (1 << 18) + 3
# An operand that promotes to the first dtype of the pair, so that there is a result of each dtype.
PROMOTED = {
    torch.float32: torch.float16,
    torch.float16: torch.int32,
    torch.bfloat16: torch.int32,
    torch.complex64: torch.float32,
    torch.int64: torch.int32,
    torch.int32: torch.int16,
    torch.int16: torch.int8,
    torch.int8: torch.bool,
    torch.uint8: torch.bool,
    torch.bool: torch.int64,
}
# The dtype of out= that no kernel writes directly: the kernel computes in its own dtype, and converts.
CONVERTED = dict.fromkeys(PROMOTED, torch.float16) | {torch.float16: torch.float32}
# Arguments that have separate kernels, and their other values.
OPTIONS: dict[str, tuple[object, ...]] = {"alpha": (2,), "rounding_mode": ("trunc", "floor"), "approximate": ("tanh",)}
# Element-wise operators that torch does not tag as pointwise.
UNTAGGED = frozenset(
    {"polar", "complex", "hardswish", "elu_backward"}
    | {f"{name}_backward" for name in ("hardsigmoid", "hardswish", "leaky_relu", "softshrink", "hardshrink")}
)
LARGEST = 100_000


def with_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A contiguous tensor of a shape, filled with the values of `tensor` repeated."""
    needed = torch.Size(shape).numel()
    values = tensor.detach().resolve_conj().resolve_neg().flatten()
    return values.repeat(-(-needed // values.numel()))[:needed].view(shape).clone()


def _applies(group: BaseGroup) -> bool:
    """Functional overloads that torch tags as pointwise, and a few that it does not."""
    overload = overload_of(full_name(group.key.operator))
    pointwise = torch.Tag.pointwise in overload.tags or group.key.operator in UNTAGGED
    return pointwise and not overload._schema.is_mutable


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    tensors = tensors_of(case)
    if strided_positions(case) != list(range(len(tensors))) or any(not 0 < t.numel() <= LARGEST for t in tensors):
        return
    matrices = MATRICES if group.key.dtype in MAIN_DTYPES else MATRICES[:1]
    for varied in _forms(replace(case, differentiable=False), matrices):
        if accepts(varied):
            yield varied


def _forms(case: Case, matrices: tuple[tuple[int, int], ...]) -> Iterator[Case]:
    tensors = tensors_of(case)
    for start in (case, *_with_options(case)):
        if any(map(torch.is_floating_point, tensors_on_cpu(start) or ())):
            several = {i: with_shape(tensor, (SEVERAL_A_THREAD,)) for i, tensor in enumerate(tensors)}
            yield with_tensors(start, several, f"{start.title}{SEVERAL_A_THREAD:,} elements")
        if len(tensors) == 2:
            for matrix in matrices:
                yield from _two_operands(start, matrix)
        elif len(tensors) == 1:
            yield from _one_operand(start)


def _with_options(case: Case) -> Iterator[Case]:
    """The call with each other value of an argument in `OPTIONS`."""
    names = {argument.name for argument in overload_of(str(case.call.__name__))._schema.arguments}
    for name, values in OPTIONS.items():
        for value in values if name in names else ():
            if case.kwargs.get(name) != value:
                yield replace(case, kwargs={**case.kwargs, name: value}, title=f"{name} {value}, ")


def _one_operand(case: Case) -> Iterator[Case]:
    """A result of another dtype, and with an option, which no other source gives, dense and transposed."""
    (source,) = tensors_of(case)
    if case.title:
        yield with_tensors(case, {0: with_shape(source, (ROWS, COLUMNS))}, f"{case.title}dense")
        yield with_tensors(case, {0: with_shape(source, (COLUMNS, ROWS)).T}, f"{case.title}transposed")
    yield from _with_out(case)


def _two_operands(case: Case, matrix: tuple[int, int]) -> Iterator[Case]:
    """Each side repeated or of one element, in one dtype and in two; dense and strided operands of two dtypes.

    The repeated side has the narrower dtype; in further matrices the other side has it.
    """
    left, right = tensors_of(case)
    row, one_element = matrix[1:], (1,)
    shapes = {
        "left repeated": (row, matrix),
        "right repeated": (matrix, row),
        "left of one element": (one_element, matrix),
        "right of one element": (matrix, one_element),
    }
    other = PROMOTED.get(right.dtype)
    for title, (first, second) in shapes.items():
        operands = {0: with_shape(left, first), 1: with_shape(right, second)}
        yield with_tensors(case, operands, case.title + title)
        if other is not None:
            narrow = int(title.startswith("left") != (matrix == MATRICES[0]))
            mixed = operands | {narrow: in_dtype(operands[narrow], other)}
            yield with_tensors(of_mixed_dtypes(case), mixed, f"{case.title}{title} {DTYPE_NAMES[other]}")
    if other is not None:
        narrow, side = (1, "right") if matrix == MATRICES[0] else (0, "left")
        dense = {0: with_shape(left, matrix), 1: with_shape(right, matrix)}
        dense[narrow] = in_dtype(dense[narrow], other)
        yield with_tensors(of_mixed_dtypes(case), dense, f"{case.title}{side} {DTYPE_NAMES[other]}")
        strided = {**dense, 0: with_shape(dense[0], matrix[::-1]).T}
        yield with_tensors(of_mixed_dtypes(case), strided, f"{case.title}left transposed, {side} {DTYPE_NAMES[other]}")


def _with_out(case: Case) -> Iterator[Case]:
    """A result of another dtype: contiguous, and transposed."""
    name = _out_overload(case.call.__name__)
    (source,) = tensors_of(case)
    dtype = CONVERTED.get(source.dtype)
    if name is None or dtype is None:
        return
    called = of_mixed_dtypes(replace(case, call=SchemaCall(name)))
    matrix = with_shape(source, (ROWS, COLUMNS))
    yield _into(called, matrix, torch.ones((ROWS, COLUMNS), dtype=dtype), "")
    yield _into(called, matrix, torch.ones((COLUMNS, ROWS), dtype=dtype).T, " transposed")


def _into(case: Case, source: Tensor, out: Tensor, title: str) -> Case:
    given = with_tensors(case, {0: source}, f"{case.title}out= {DTYPE_NAMES[out.dtype]}{title}")
    return replace(given, kwargs={**given.kwargs, "out": out})


def _out_overload(name: str) -> str | None:
    """The overload with `out` that takes the same arguments otherwise."""
    overload = overload_of(name)
    own = [(argument.name, str(argument.type)) for argument in overload._schema.arguments]
    packet = overload.overloadpacket
    for other in (getattr(packet, overload_name) for overload_name in packet.overloads()):
        *others, last = [(argument.name, str(argument.type)) for argument in other._schema.arguments]
        if last[0] == "out" and others == own:
            return str(other.name())
    return None


ELEMENTWISE_KERNEL_FACTOR = Factor("element-wise kernels", in_each_case(_variations), _applies)
