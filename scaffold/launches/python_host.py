"""The host side of a launch in Python, which calls a shader of `torch.mps.compile_shader`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgen.model import Argument, BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.model import OverloadModel
from .launch import ROW_LENGTH, Launch, Result
from .signatures import Signature, SignatureParameter

_PYTHON = {
    BaseTy.Tensor: "torch.Tensor",
    BaseTy.int: "int",
    BaseTy.SymInt: "int",
    BaseTy.float: "float",
    BaseTy.bool: "bool",
    BaseTy.str: "str",
    BaseTy.Scalar: "float",
    BaseTy.ScalarType: "torch.dtype",
    BaseTy.Layout: "torch.layout",
    BaseTy.MemoryFormat: "torch.memory_format",
    BaseTy.Device: "torch.device",
    BaseTy.Generator: "torch.Generator",
}
_DEFAULTS = {
    "None": "None",
    "True": "True",
    "False": "False",
    "[]": "()",
    "Mean": "1",
    "contiguous_format": "torch.contiguous_format",
    "long": "torch.long",
    "float": "torch.float",
    "strided": "torch.strided",
}


@dataclass(frozen=True)
class PythonHost:
    """A launch as Python writes it."""

    launch: Launch

    @cached_property
    def signature(self) -> Signature:
        """Names and defaults of the schema, keyword-only where the schema says so."""
        return _signature(self.launch.overload)

    @property
    def parameters(self) -> list[str]:
        """The declarations of the parameters."""
        declarations: list[str] = []
        for parameter in self.signature.parameters:
            if parameter.keyword_only and "*" not in declarations:
                declarations.append("*")
            default = f" = {parameter.default}" if parameter.default is not None else ""
            declarations.append(f"{parameter.name}: {parameter.type}{default}")
        return declarations

    @property
    def overload(self) -> str:
        """The overload as an attribute of `torch.ops.aten`."""
        return f"{self.launch.overload.function.operator}.{self.launch.overload.overload}"

    @property
    def inputs(self) -> list[str]:
        """The arguments before the outputs."""
        return [argument.name for argument in self.launch.overload.inputs]

    @property
    def floats(self) -> list[str]:
        """The numbers as Python floats; one zero where there is none, since a buffer cannot be empty."""
        return [f"float({self.launch.argument(buffer)})" for buffer in self.launch.numbers] or ["0.0"]

    @property
    def row_length(self) -> str:
        """The expression for the length of a row; empty for kinds that do not work by rows."""
        if not self.launch.by_rows:
            return ""
        if not self.launch.inputs:
            return "1"
        name = self.launch.inputs[0].name
        return f"{name}.shape[-1] if {name}.dim() else 1"

    def allocated(self, result: Result) -> str:
        """How a result is allocated: like the first input, for the author to change."""
        dtype = ", dtype=torch.int64" if result.metal == "long" else ""
        if self.launch.inputs:
            return f"torch.empty_like({self.launch.inputs[0].name}{dtype})"
        return f'torch.empty(0, device="mps"{dtype})'

    @property
    def bound(self) -> list[str]:
        """The expressions that are bound, in the order of the buffers."""
        words = []
        for buffer in self.launch.buffers:
            if not buffer.host or buffer == ROW_LENGTH:
                words.append(buffer.name)
            else:
                words.append(f"{'float' if buffer.host == 'float' else 'int'}({self.launch.argument(buffer)})")
        return words

    @property
    def returned(self) -> str:
        """What the function returns."""
        return ", ".join("()" if part == "{}" else part for part in self.launch.returned)


def _signature(overload: OverloadModel) -> Signature:
    """The signature of a Python kernel: names and defaults of the schema, keyword-only where the schema says so."""
    flat = overload.schema.arguments
    positional = {argument.name for argument in flat.flat_positional}
    parameters = tuple(
        SignatureParameter(
            argument.name, _python_type(argument.type), _default(argument), argument.name not in positional
        )
        for argument in overload.arguments
    )
    kinds = [_python_type(returned.type) for returned in overload.returns]
    returns = "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    return Signature(parameters, returns)


def _python_type(kind: Type) -> str:
    if isinstance(kind, OptionalType):
        return f"{_python_type(kind.elem)} | None"
    if isinstance(kind, ListType):
        return f"Sequence[{_python_type(kind.elem)}]"
    return _PYTHON.get(kind.name, "object") if isinstance(kind, BaseType) else "object"


def _default(argument: Argument) -> str | None:
    if argument.default is None:
        return None
    text = str(argument.default)
    if text in _DEFAULTS:
        return _DEFAULTS[text]
    if text.startswith("["):
        return f"({text[1:-1].rstrip(',')},)"
    kind = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(kind, ListType) and text.lstrip("-").isdigit():
        # One number stands for a list of it: `int[2] stride=1`.
        return f"({', '.join([text] * (kind.size or 1))},)"
    return text
