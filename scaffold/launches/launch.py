"""Describes the launch of one overload's kernel: its Metal buffers, in the order of host code and shader.

It is the same for every language; `python_host`, `aten_host` and `upstream_host` write its host code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from torchgen.model import BaseTy, Type

from ..operators.kinds import KernelKind
from ..operators.model import OverloadModel, base_types
from ..operators.observation import FOLLOWS, Observation, ObservedTensor
from .buffers import ROW_LENGTH, BoundBuffer, Result
from .elements import FLOATING_ELEMENTS, METAL_ELEMENTS, metal_name
from .windows import Windows, windows_of

# Kinds with one thread per row; the length of a row is bound.
ROW_KINDS = (KernelKind.REDUCTION, KernelKind.SCAN, KernelKind.SORT)
# Products, of the kind linalg: one thread per element of the result. Other kernels of it have one per matrix.
_MULTIPLIES = re.compile(r"(^|_)b?mm(_|$)|conv|rnn|linear(_|$)")


@dataclass(frozen=True)
class Launch:
    """The kernel of one overload.

    Attributes:
        overload: the overload.
        kind: the kind of its kernel.
        bound: the tensors and numbers of the schema that are bound, outputs first.
        results: the tensors that the host allocates, for a functional form.
        left: arguments that the author binds by hand if the kernel needs them: lists of tensors, generators, strings of
            any value.
        observation: of calls on the CPU; None if there are none.
        reference: the lines of torch's definition of the operator.
        elements: the types that the kernel is instantiated for.
        served_by: the out overload that this one calls with new results; empty if it launches its own kernel.
        served_outputs: the names of that overload's outputs.
    """

    overload: OverloadModel
    kind: KernelKind
    bound: tuple[BoundBuffer, ...]
    results: tuple[Result, ...]
    left: tuple[str, ...]
    observation: Observation | None = None
    reference: tuple[str, ...] = ()
    elements: tuple[str, ...] = FLOATING_ELEMENTS
    served_by: str = ""
    served_outputs: tuple[str, ...] = ()

    @property
    def integer_elements(self) -> tuple[str, ...]:
        """The integer types to instantiate for, by the observed calls."""
        seen = self.observation.integers if self.observation and self.source and self.source.metal == "T" else ()
        return tuple(METAL_ELEMENTS[dtype] for dtype in seen)

    @property
    def id(self) -> str:
        """The overload's name in C++, Metal and Python; in `at::_ops` its structure has the same name."""
        return self.overload.identifier

    @property
    def name(self) -> str:
        """The overload's name, `mode.values`."""
        return self.overload.name

    @property
    def form(self) -> str:
        """`functional`, `out`, `in-place` or `mutable`."""
        return self.overload.form

    @property
    def text(self) -> str:
        """The schema."""
        return self.overload.text

    @property
    def tensors(self) -> tuple[BoundBuffer, ...]:
        """The buffers that are tensors."""
        return tuple(buffer for buffer in self.bound if not buffer.host)

    @property
    def numbers(self) -> tuple[BoundBuffer, ...]:
        """The buffers that are numbers."""
        return tuple(buffer for buffer in self.bound if buffer.host and not buffer.many and not buffer.aspect)

    @property
    def words(self) -> tuple[BoundBuffer, ...]:
        """The numbers of string arguments."""
        return tuple(buffer for buffer in self.bound if buffer.is_word)

    @property
    def inputs(self) -> tuple[BoundBuffer, ...]:
        """The tensors that are only read."""
        return tuple(buffer for buffer in self.tensors if not buffer.written)

    @property
    def outputs(self) -> tuple[BoundBuffer, ...]:
        """The tensors that are written."""
        return tuple(buffer for buffer in self.tensors if buffer.written)

    @property
    def read(self) -> tuple[BoundBuffer, ...]:
        """The tensors whose values are read: the inputs, and the tensors that an in-place or mutable form changes."""
        outs = {metal_name(output.name) for output in self.overload.outputs}
        made = {result.name for result in self.results}
        return tuple(b for b in self.tensors if not b.written or (b.name not in outs and b.name not in made))

    @property
    def source(self) -> BoundBuffer | None:
        """The tensor whose dtype the kernel computes in: the first one that is read and has that dtype."""
        order = [argument.name for argument in self.overload.arguments]
        always = sorted((b for b in self.read if not b.optional), key=lambda b: order.index(self.argument(b)))
        return next((buffer for buffer in always if buffer.metal == "T"), always[0] if always else None)

    @property
    def by_rows(self) -> bool:
        """Whether a thread works on a row."""
        return self.kind in ROW_KINDS

    @property
    def buffers(self) -> tuple[BoundBuffer, ...]:
        """The buffers that the shader declares: with the length of a row if the kind works by rows."""
        return (*self.bound, ROW_LENGTH) if self.by_rows else self.bound

    @cached_property
    def row_dim(self) -> str:
        """The argument with the dimensions of a row; empty if there is none, and for other kinds."""
        return "dim" if self.by_rows and self.inputs and has_dims(self.overload) else ""

    @property
    def in_rows(self) -> tuple[str, ...]:
        """The tensors that the host lays out by rows, results included."""
        if not self.row_dim:
            return ()
        same = self.observation.like_first if self.observation else frozenset({self.inputs[0].name})
        named = [b.name for b in self.inputs if not b.optional and self.argument(b) in same]
        return (*(named or [self.inputs[0].name]), *(b.name for b in self.outputs if self.is_row(b)))

    @property
    def thread_per_row(self) -> bool:
        """Whether a thread writes a row or its reduction; else it writes an element of the first output."""
        return bool(self.row_dim) or (self.by_rows and bool(self.outputs) and self.is_row(self.outputs[0]))

    @property
    def thread_per_matrix(self) -> bool:
        """Whether a thread works on a matrix of a batch. Results that the call does not request are empty."""
        factors = self.kind is KernelKind.LINALG and not _MULTIPLIES.search(self.overload.function.operator)
        return factors and self.source is not None and self.has_bound_sizes(self.source)

    @property
    def is_one_row(self) -> bool:
        """Whether all of the first input is one row: it has no dim to choose, and the result is one number."""
        rules = [self.shape_of(buffer) for buffer in self.outputs]
        return self.by_rows and not self.row_dim and bool(rules) and all(rule == "one" for rule in rules)

    def has_bound_sizes(self, buffer: BoundBuffer) -> bool:
        """Whether the sizes of a tensor are bound."""
        return any(bound.aspect == "sizes" and bound.of == buffer.name for bound in self.bound)

    @property
    def windows(self) -> Windows | None:
        """The windows of a pooling kernel, if the sizes of its input and output are bound."""
        sized = {buffer.of for buffer in self.bound if buffer.aspect == "sizes"}
        needed = {self.source.name, self.outputs[0].name} if self.source and self.outputs else {""}
        return windows_of(self.overload.function.operator) if needed <= sized else None

    @property
    def broadcast_inputs(self) -> tuple[BoundBuffer, ...]:
        """The inputs of an elementwise kernel that are broadcast to the output's shape."""
        if not self.kind.elementwise:
            return ()
        seen = self.observation
        if seen is None or any(result.shape == "broadcast" for result in seen.results):
            return tuple(buffer for buffer in self.read if not buffer.optional)
        return tuple(b for b in self.read if not b.optional and self.argument(b) in seen.like_first)

    def element_of(self, buffer: BoundBuffer) -> str:
        """The name of a tensor's dtype, or FOLLOWS."""
        names = {metal: name for name, metal in METAL_ELEMENTS.items()}
        return FOLLOWS if buffer.metal == "T" else names.get(buffer.metal, FOLLOWS)

    def shape_of(self, buffer: BoundBuffer) -> str:
        """The rule for the shape of a written tensor; empty if none is known."""
        seen = self.observed_output(buffer)
        return seen.shape if seen else ""

    def observed_output(self, buffer: BoundBuffer) -> ObservedTensor | None:
        """The observations of a written tensor."""
        places = [written.name for written in self.outputs]
        seen = self.observation
        if seen is None or buffer.name not in places or places.index(buffer.name) >= len(seen.results):
            return None
        return seen.results[places.index(buffer.name)]

    def is_row(self, buffer: BoundBuffer) -> bool:
        """Whether an output has the first input's shape, so that each row gives a row instead of one value."""
        if self.form == "in-place":
            return True
        seen = self.observed_output(buffer)
        rule = seen.shape if seen and not seen.is_loss else ""
        like = rule.removeprefix("like ")
        first = self.observation.like_first if self.observation else frozenset()
        return rule.startswith("like ") and like in first

    @property
    def first_tensor(self) -> str:
        """The tensor whose dtype chooses the instantiation; empty if there is none."""
        always = [buffer for buffer in self.tensors if not buffer.optional]
        tensors = [buffer for buffer in always if buffer.metal == "T"] or always
        return tensors[0].name if tensors else ""

    @property
    def checked(self) -> list[str]:
        """The tensors whose device the host checks: those that are not optional."""
        results = {result.name for result in self.results}
        names = {argument.name for argument in self.overload.arguments}
        always = [buffer.name for buffer in self.tensors if not buffer.optional]
        return [name for name in always if name not in results and name in names]

    @property
    def returned(self) -> list[str]:
        """A written argument or a result for each returned value; `{}` for a value that is not a tensor."""
        if self.form in ("out", "in-place"):
            return [argument.name for argument in self.overload.written][: len(self.overload.returns)]
        results = iter([result.name for result in self.results])
        written = {
            annotation: argument.name
            for argument in self.overload.arguments
            if (annotation := str(argument.annotation or ""))
        }
        parts = []
        for returned in self.overload.returns:
            if returned.annotation is not None and str(returned.annotation) in written:
                parts.append(written[str(returned.annotation)])
            else:
                parts.append(next(results, "{}"))
        return parts

    @property
    def is_elementwise_out(self) -> bool:
        """Whether the host resizes the only output to the shape that the inputs broadcast to."""
        return (
            self.kind.elementwise
            and self.form == "out"
            and len(self.outputs) == 1
            and bool(self.inputs)
            and len(self.broadcast_inputs) == len(self.read)
        )

    @property
    def is_floating_elementwise(self) -> bool:
        """Whether the runtime's elementwise launch fits: one output, one or two inputs, and numbers."""
        return (
            self.kind.elementwise
            and self.form == "out"
            and not self.left
            and len(self.outputs) == 1
            and len(self.inputs) in (1, 2)
            and len(self.broadcast_inputs) == len(self.read)
            and all(buffer.metal == "T" for buffer in self.tensors)
            and not any(buffer.many or buffer.aspect or buffer.optional or buffer.is_word for buffer in self.bound)
        )

    def can_serve(self, other: Launch) -> bool:
        """Whether this out form can compute the functional form `other`: it must give its outputs their shape."""
        seen = self.observation
        return (
            (self.form, other.form) == ("out", "functional")
            and other.source is not None
            and [(argument.name, str(argument.type)) for argument in self.overload.inputs]
            == [(argument.name, str(argument.type)) for argument in other.overload.arguments]
            and len(other.results) == len(self.overload.outputs) == len(self.outputs)
            and seen is not None
            and all(self.is_elementwise_out or result.shape or result.sizes for result in seen.results)
        )

    def argument(self, buffer: BoundBuffer) -> str:
        """The name of the buffer's argument; the buffer's own name ends in `_` if Metal reserves the word."""
        names = {argument.name for argument in self.overload.arguments}
        name = buffer.of or buffer.name
        return name if name in names else name.removesuffix("_")

    def type_of(self, argument: str) -> Type | None:
        """The type of an argument by its name; None for a result or any other name."""
        return next((own.type for own in self.overload.arguments if own.name == argument), None)


def has_dims(overload: OverloadModel) -> bool:
    """Whether an argument `dim` selects one or more dimensions."""
    return any(
        argument.name == "dim" and base in (BaseTy.int, BaseTy.SymInt)
        for argument in overload.inputs
        for base in base_types(argument.type)
    )
