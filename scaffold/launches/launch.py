"""What a scaffolded kernel binds: its tensors and numbers as Metal buffers, in one order for host and shader."""

from __future__ import annotations

from dataclasses import dataclass

from torchgen.model import Argument, BaseTy, BaseType

from ..operators.model import OverloadModel
from .signatures import is_optional_tensor

# Torch binds at most 31 buffers; the last one is the number of threads.
MOST_BUFFERS = 30

_NUMBERS = {
    BaseTy.int: ("long", "int64_t"),
    BaseTy.SymInt: ("long", "int64_t"),
    BaseTy.bool: ("long", "int64_t"),  # compile_shader binds a bool as 64 bits
    BaseTy.float: ("float", "float"),
    BaseTy.Scalar: ("float", "float"),
}
_INDEX_NAMES = ("indices", "index", "mode_indices", "counts", "pivots", "info")


@dataclass(frozen=True)
class Buffer:
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


@dataclass(frozen=True)
class Result:
    """A tensor that the functional form allocates; `metal` is its element type in the shader."""

    name: str
    metal: str


@dataclass(frozen=True)
class Launch:
    """The kernel of one overload.

    Attributes:
        buffers: what is bound, outputs first.
        results: the tensors that the host allocates, for a functional form.
        left: arguments that are bound by hand where they are needed: optional tensors, lists, generators.
    """

    buffers: tuple[Buffer, ...]
    results: tuple[Result, ...]
    left: tuple[str, ...]

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        """The buffers that are tensors."""
        return tuple(buffer for buffer in self.buffers if not buffer.host)

    @property
    def numbers(self) -> tuple[Buffer, ...]:
        """The buffers that are numbers."""
        return tuple(buffer for buffer in self.buffers if buffer.host)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The tensors that are only read."""
        return tuple(buffer for buffer in self.tensors if not buffer.written)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The tensors that are written."""
        return tuple(buffer for buffer in self.tensors if buffer.written)


def launch_of(overload: OverloadModel) -> Launch:
    """What the kernel of an overload binds."""
    written = {argument.name for argument in overload.written}
    results = _results(overload)
    outputs = [Buffer(result.name, result.metal, written=True) for result in results]
    inputs: list[Buffer] = []
    numbers: list[Buffer] = []
    left: list[str] = []
    for argument in overload.arguments:
        kind = argument.type
        if isinstance(kind, BaseType) and kind.name is BaseTy.Tensor:
            target = outputs if argument.name in written else inputs
            target.append(Buffer(_metal_name(argument.name), _element(argument), written=argument.name in written))
        elif isinstance(kind, BaseType) and kind.name in _NUMBERS:
            metal, host = _NUMBERS[kind.name]
            numbers.append(Buffer(_metal_name(argument.name), metal, host=host))
        elif not isinstance(kind, BaseType) or is_optional_tensor(argument) or kind.name is not BaseTy.Tensor:
            left.append(argument.name)
    return Launch(tuple([*outputs, *inputs, *numbers][:MOST_BUFFERS]), tuple(results), tuple(left))


def _results(overload: OverloadModel) -> list[Result]:
    if overload.form not in ("functional", "mutable"):
        return []
    plain = [one for one in overload.returns if isinstance(one.type, BaseType) and one.type.name is BaseTy.Tensor]
    if len(plain) != len(overload.returns):
        return []
    fresh = [one for one in plain if one.annotation is None]
    taken = {argument.name for argument in overload.arguments}
    names = []
    for number, returned in enumerate(fresh):
        name = returned.name or ("result" if len(fresh) == 1 else f"result{number}")
        names.append(Result(_metal_name(f"{name}_" if name in taken else name), "long" if _is_index(name) else "T"))
    return names


def _element(argument: Argument) -> str:
    return "long" if _is_index(argument.name) else "T"


def _is_index(name: str) -> bool:
    return name in _INDEX_NAMES or name.endswith("indices")


# Words that C++ or Metal keep for themselves; torchgen leaves them alone, since C++ code never sees some of them.
_RESERVED = frozenset(("half", "float", "long", "device", "constant", "kernel", "thread", "out_", "default"))


def _metal_name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name
