"""Derives the launch of an overload's kernel from its schema and from observed calls."""

from __future__ import annotations

from collections.abc import Sequence

from torchgen.model import Argument, BaseTy, BaseType, ListType, OptionalType, Type

from ...metal_limits import MAX_BUFFERS
from ..operators.kinds import KernelKind
from ..operators.model import OverloadModel, is_optional_tensor
from ..operators.observation import FOLLOWS, Observation, ObservedTensor
from .buffers import BoundBuffer, Result
from .choices import choices_of
from .elements import METAL_ELEMENTS, element_by_name, metal_name
from .launch import ROW_KINDS, Launch, has_dims

# The last buffer is the number of threads.
MOST_BUFFERS = MAX_BUFFERS - 1
# Arguments that only the host needs: it lays out the rows and gives the results their shapes.
_OF_ROWS = ("dim", "keepdim")

_NUMBERS = {
    BaseTy.int: ("long", "int64_t"),
    BaseTy.SymInt: ("long", "int64_t"),
    BaseTy.bool: ("long", "int64_t"),  # compile_shader binds a bool as 64 bits
    BaseTy.float: ("float", "float"),
    BaseTy.Scalar: ("float", "float"),
}


def launch_of(overload: OverloadModel, kind: KernelKind, observation: Observation | None = None) -> Launch:
    """The launch of an overload: it binds outputs, inputs, numbers, then flags of optional arguments and sizes."""
    written = {argument.name for argument in overload.written}
    results = _results(overload, observation)
    outputs = [BoundBuffer(result.name, result.metal, written=True) for result in results]
    inputs: list[BoundBuffer] = []
    numbers: list[BoundBuffer] = []
    given: list[BoundBuffer] = []
    left: list[str] = []
    by_rows = kind in ROW_KINDS and has_dims(overload)
    for argument in overload.arguments:
        inner = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
        name, is_optional = metal_name(argument.name), isinstance(argument.type, OptionalType)
        if by_rows and argument.name in _OF_ROWS:
            continue  # used by the host only
        if is_optional_tensor(argument) or (isinstance(inner, BaseType) and inner.name is BaseTy.Tensor):
            metal = _metal_element(argument, observation, [output.name for output in overload.outputs])
            target = outputs if argument.name in written else inputs
            target.append(BoundBuffer(name, metal, written=argument.name in written, optional=is_optional))
        elif number := _number(inner):
            metal, host, many = number
            choices = choices_of(overload.function.operator, argument.name) if metal == "long" and not many else ()
            numbers.append(BoundBuffer(name, metal, host=host, many=many, optional=is_optional, choices=choices))
        elif (
            isinstance(inner, BaseType)
            and inner.name is BaseTy.str
            and (words := choices_of(overload.function.operator, argument.name))
        ):
            number_of_word = BoundBuffer(
                name, "long", host="int64_t", optional=is_optional, choices=words, is_word=True
            )
            numbers.append(number_of_word)
        elif not (isinstance(inner, BaseType) and inner.name is BaseTy.ScalarType):
            left.append(argument.name)
            continue
        else:
            continue  # a dtype is used by the host only
        if is_optional:
            given.append(BoundBuffer(f"has_{argument.name}", "long", host="int64_t", aspect="given", of=argument.name))
    bare = Launch(overload, kind, (*outputs, *inputs), tuple(results), tuple(left), observation)
    sizes = [
        BoundBuffer(f"{buffer.name}_sizes", "long", host="int64_t", many=True, aspect="sizes", of=buffer.name)
        for buffer in _sized(bare)
    ]
    bound = tuple([*outputs, *inputs, *numbers, *given, *sizes][:MOST_BUFFERS])
    return Launch(overload, kind, bound, tuple(results), tuple(left), observation)


def _sized(launch: Launch) -> list[BoundBuffer]:
    """The tensors whose sizes are bound: those neither broadcast to the output nor laid out by rows."""
    arranged = {*launch.in_rows, *(buffer.name for buffer in launch.broadcast_inputs)}
    whole = [buffer for buffer in launch.inputs if buffer.name not in arranged]
    whole += [buffer for buffer in launch.read if buffer.written and buffer.name not in arranged]
    if launch.kind.elementwise:
        return [*launch.broadcast_inputs[:1], *whole] if whole else []
    if launch.by_rows:
        return whole
    written = [buffer for buffer in launch.outputs if buffer.name not in arranged]
    if launch.kind is KernelKind.POOLING:
        written = _of_different_shapes(launch, written)
    return list(dict.fromkeys([*written, *whole]))


def _of_different_shapes(launch: Launch, written: Sequence[BoundBuffer]) -> list[BoundBuffer]:
    """The first output of each shape, because outputs may share one, as the indices and values of a pool do."""
    kept: list[BoundBuffer] = []
    shapes: set[tuple[object, ...]] = set()
    for buffer in written:
        seen = launch.observed_output(buffer)
        shape = (seen.shape, seen.sizes) if seen and (seen.shape or seen.sizes) else (buffer.name,)
        kept += [] if shape in shapes else [buffer]
        shapes.add(shape)
    return kept


def _number(kind: Type) -> tuple[str, str, bool] | None:
    """The Metal type and C++ type of a number, and whether it is a list; None if it is not a number."""
    inner = kind.elem if isinstance(kind, ListType) else kind
    if not isinstance(inner, BaseType) or inner.name not in _NUMBERS:
        return None
    if isinstance(kind, ListType) and _NUMBERS[inner.name][1] != "int64_t":
        return None
    return (*_NUMBERS[inner.name], isinstance(kind, ListType))


def _results(overload: OverloadModel, observation: Observation | None) -> list[Result]:
    if overload.form not in ("functional", "mutable"):
        return []
    types = [returned.type for returned in overload.returns]
    if not all(isinstance(type_, BaseType) and type_.name is BaseTy.Tensor for type_ in types):
        return []
    fresh = [place for place, returned in enumerate(overload.returns) if returned.annotation is None]
    taken = {argument.name for argument in overload.arguments}
    results = []
    for number, place in enumerate(fresh):
        name = overload.returns[place].name or ("result" if len(fresh) == 1 else f"result{number}")
        seen = observation.results[place] if observation and place < len(observation.results) else None
        element = seen.element if seen else element_by_name(name)
        metal = METAL_ELEMENTS.get(element, "T")
        own = metal_name(f"{name}_" if name in taken else name)
        observed = seen or ObservedTensor(element, "")
        own_element = element if metal != "T" else FOLLOWS
        results.append(
            Result(own, metal, own_element, observed.shape, observed.sizes, observed.is_loss, observed.requested_by)
        )
    return results


def _metal_element(argument: Argument, observation: Observation | None, outs: Sequence[str]) -> str:
    """The element type of an argument in the shader: the observed one, else by its name."""
    element = element_by_name(argument.name)
    if observation is not None and argument.name in outs and outs.index(argument.name) < len(observation.results):
        element = observation.results[outs.index(argument.name)].element
    elif observation is not None:
        element = observation.inputs.get(argument.name, element)
    return METAL_ELEMENTS.get(element, "T")
