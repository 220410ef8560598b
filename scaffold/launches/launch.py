"""The launch of one overload's kernel: what is bound, as Metal buffers, in one order for host and shader.

What is said of it here holds in every language; how its host side is written stands in `python_host`, `aten_host` and
`stable_host`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchgen.model import Argument, BaseTy, BaseType, Type

from ...metal_limits import MAX_BUFFERS
from ..operators.kinds import KernelKind
from ..operators.model import OverloadModel, is_optional_tensor

# The last buffer is the number of threads.
MOST_BUFFERS = MAX_BUFFERS - 1
# Kinds whose threads work on a row each, and are told how long it is.
ROW_KINDS = (KernelKind.REDUCTION, KernelKind.SCAN, KernelKind.SORT)

_NUMBERS = {
    BaseTy.int: ("long", "int64_t"),
    BaseTy.SymInt: ("long", "int64_t"),
    BaseTy.bool: ("long", "int64_t"),  # compile_shader binds a bool as 64 bits
    BaseTy.float: ("float", "float"),
    BaseTy.Scalar: ("float", "float"),
}
_INDEX_NAMES = ("indices", "index", "mode_indices", "counts", "pivots", "info")


@dataclass(frozen=True)
class BoundBuffer:
    """One `[[buffer(n)]]`.

    `name` is the argument's or result's name; `metal` the type of the shader's parameter, without qualifiers;
    `host` the C++ type that a number is converted to, empty for tensors.
    """

    name: str
    metal: str
    written: bool = False
    host: str = ""

    @property
    def declaration(self) -> str:
        """The shader's parameter, without its attribute."""
        if self.host:
            return f"constant {self.metal}& {self.name}"
        return f"device {'' if self.written else 'const '}{self.metal}* {self.name}"


ROW_LENGTH = BoundBuffer("row_length", "long", host="int64_t")


@dataclass(frozen=True)
class Result:
    """A tensor that the functional form allocates; `metal` is its element type in the shader."""

    name: str
    metal: str


@dataclass(frozen=True)
class Launch:
    """The kernel of one overload.

    Attributes:
        overload: what the kernel serves.
        kind: which body it starts from.
        bound: the tensors and numbers of the schema that are bound, outputs first.
        results: the tensors that the host allocates, for a functional form.
        left: arguments that are bound by hand where they are needed: optional tensors, lists, generators.
    """

    overload: OverloadModel
    kind: KernelKind
    bound: tuple[BoundBuffer, ...]
    results: tuple[Result, ...]
    left: tuple[str, ...]

    @property
    def id(self) -> str:
        """A name in C++, Metal and Python; the overload's structure in `at::_ops`."""
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
        return tuple(buffer for buffer in self.bound if buffer.host)

    @property
    def inputs(self) -> tuple[BoundBuffer, ...]:
        """The tensors that are only read."""
        return tuple(buffer for buffer in self.tensors if not buffer.written)

    @property
    def outputs(self) -> tuple[BoundBuffer, ...]:
        """The tensors that are written."""
        return tuple(buffer for buffer in self.tensors if buffer.written)

    @property
    def by_rows(self) -> bool:
        """Whether a thread works on a row."""
        return self.kind in ROW_KINDS

    @property
    def buffers(self) -> tuple[BoundBuffer, ...]:
        """What the shader declares, the length of a row included where the kind works by rows."""
        return (*self.bound, ROW_LENGTH) if self.by_rows else self.bound

    @property
    def first_tensor(self) -> str:
        """The tensor whose dtype chooses the instantiation; empty where there is none."""
        tensors = [buffer for buffer in self.tensors if buffer.metal == "T"] or list(self.tensors)
        return tensors[0].name if tensors else ""

    @property
    def checked(self) -> list[str]:
        """The tensors of which the host checks the device: those that are always there."""
        results = {result.name for result in self.results}
        names = {argument.name for argument in self.overload.arguments}
        return [buffer.name for buffer in self.tensors if buffer.name not in results and buffer.name in names]

    @property
    def returned(self) -> list[str]:
        """What is returned: a written argument or a result for each value; `{}` for one of a type that is no tensor."""
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
        """Whether the host gives the one output the shape that the inputs broadcast to."""
        return self.kind.elementwise and self.form == "out" and len(self.outputs) == 1 and bool(self.inputs)

    @property
    def is_floating_elementwise(self) -> bool:
        """Whether the kernels' elementwise launch serves it: one output, one or two inputs, numbers."""
        return (
            self.kind.elementwise
            and self.form == "out"
            and not self.left
            and len(self.outputs) == 1
            and len(self.inputs) in (1, 2)
            and all(buffer.metal == "T" for buffer in self.tensors)
        )

    def argument(self, buffer: BoundBuffer) -> str:
        """The argument's own name, which the buffer's may extend where Metal keeps the word for itself."""
        names = {argument.name for argument in self.overload.arguments}
        return buffer.name if buffer.name in names else buffer.name.removesuffix("_")

    def type_of(self, argument: str) -> Type | None:
        """The type of an argument by its name; None for what is no argument, such as a result."""
        return next((own.type for own in self.overload.arguments if own.name == argument), None)


def launch_of(overload: OverloadModel, kind: KernelKind) -> Launch:
    """What the kernel of an overload binds."""
    written = {argument.name for argument in overload.written}
    results = _results(overload)
    outputs = [BoundBuffer(result.name, result.metal, written=True) for result in results]
    inputs: list[BoundBuffer] = []
    numbers: list[BoundBuffer] = []
    left: list[str] = []
    for argument in overload.arguments:
        type_ = argument.type
        if isinstance(type_, BaseType) and type_.name is BaseTy.Tensor:
            target = outputs if argument.name in written else inputs
            target.append(BoundBuffer(_metal_name(argument.name), _element(argument), written=argument.name in written))
        elif isinstance(type_, BaseType) and type_.name in _NUMBERS:
            metal, host = _NUMBERS[type_.name]
            numbers.append(BoundBuffer(_metal_name(argument.name), metal, host=host))
        elif not isinstance(type_, BaseType) or is_optional_tensor(argument) or type_.name is not BaseTy.Tensor:
            left.append(argument.name)
    bound = tuple([*outputs, *inputs, *numbers][:MOST_BUFFERS])
    return Launch(overload, kind, bound, tuple(results), tuple(left))


def _results(overload: OverloadModel) -> list[Result]:
    if overload.form not in ("functional", "mutable"):
        return []
    types = [returned.type for returned in overload.returns]
    if not all(isinstance(type_, BaseType) and type_.name is BaseTy.Tensor for type_ in types):
        return []
    fresh = [returned for returned in overload.returns if returned.annotation is None]
    taken = {argument.name for argument in overload.arguments}
    results = []
    for number, returned in enumerate(fresh):
        name = returned.name or ("result" if len(fresh) == 1 else f"result{number}")
        results.append(Result(_metal_name(f"{name}_" if name in taken else name), "long" if _is_index(name) else "T"))
    return results


def _element(argument: Argument) -> str:
    return "long" if _is_index(argument.name) else "T"


def _is_index(name: str) -> bool:
    return name in _INDEX_NAMES or name.endswith("indices")


# Words that C++ or Metal keep for themselves; torchgen leaves them alone, since C++ code never sees some of them.
_RESERVED = frozenset(("half", "float", "long", "device", "constant", "kernel", "thread", "out_", "default"))


def _metal_name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name
