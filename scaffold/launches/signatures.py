"""How an overload is written in C++, in the stable C++ API and in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgen import local
from torchgen.api.types import DispatcherSignature
from torchgen.model import Argument, BaseTy, BaseType, ListType, OptionalType, Type

from ..errors import InexpressibleError
from ..operators.model import OverloadModel, is_tensor


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function: its name, its type and, in Python, its default as text."""

    name: str
    type: str
    default: str | None = None
    keyword_only: bool = False


@dataclass(frozen=True)
class Signature:
    """A function's parameters and return type."""

    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def declared(self) -> str:
        """The parameters as C++ declares them."""
        return ", ".join(f"{parameter.type} {parameter.name}" for parameter in self.parameters)


def cpp_signature(overload: OverloadModel) -> Signature:
    """The signature that the dispatcher asks of a kernel, with plain integers instead of symbolic ones."""
    with local.parametrize(use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False):
        signature = DispatcherSignature.from_schema(overload.schema, symint=False)
        parameters = tuple(Parameter(binding.name, binding.nctype.type.cpp_type()) for binding in signature.arguments())
        return Signature(parameters, signature.returns_type().cpp_type())


# What the stable API has for the types of schemas; the C shim converts no others.
_STABLE = {
    BaseTy.Tensor: "torch::stable::Tensor",
    BaseTy.int: "int64_t",
    BaseTy.SymInt: "int64_t",
    BaseTy.float: "double",
    BaseTy.bool: "bool",
    BaseTy.str: "std::string",
    BaseTy.ScalarType: "torch::headeronly::ScalarType",
    BaseTy.Layout: "torch::headeronly::Layout",
    BaseTy.MemoryFormat: "torch::headeronly::MemoryFormat",
    BaseTy.Device: "torch::stable::Device",
    BaseTy.Scalar: "double",
    BaseTy.Generator: "torch::stable::Generator",
}
# What a type needs to be passed: before these releases the shim cannot convert it.
STABLE_SINCE = (2, 10)
STABLE_GENERATOR_SINCE = (2, 13)


def stable_since(overloads: Sequence[OverloadModel]) -> tuple[int, int]:
    """The first release whose stable ABI can pass everything that these overloads take."""
    takes = (argument.type for overload in overloads for argument in overload.arguments)
    return STABLE_GENERATOR_SINCE if any(_holds(kind, BaseTy.Generator) for kind in takes) else STABLE_SINCE


def stable_signature(overload: OverloadModel) -> Signature:
    """The signature in the stable C++ API. Outputs come as tensors by value: a handle, not a copy.

    Raises InexpressibleError that names the argument that cannot be passed.
    """
    parameters = tuple(
        Parameter(argument.name, _stable_type(argument.type, overload, argument.name))
        for argument in overload.arguments
    )
    returns = [_stable_type(returned.type, overload, "its return value") for returned in overload.returns]
    joined = "void" if not returns else returns[0] if len(returns) == 1 else f"std::tuple<{', '.join(returns)}>"
    return Signature(parameters, joined)


def needs_bridge(overload: OverloadModel) -> bool:
    """Whether a Scalar is in the schema: the stable shim has none, so that Python passes a float in its place."""
    return any(_holds(argument.type, BaseTy.Scalar) for argument in overload.arguments)


def _stable_type(kind: Type, overload: OverloadModel, what: str) -> str:
    if isinstance(kind, OptionalType):
        return f"std::optional<{_stable_type(kind.elem, overload, what)}>"
    if isinstance(kind, ListType):
        element = _stable_type(kind.elem, overload, what)
        return f"std::vector<{element}>"
    if isinstance(kind, BaseType) and kind.name in _STABLE:
        return _STABLE[kind.name]
    raise InexpressibleError(
        f"the stable ABI cannot pass {what} of aten::{overload.name}, of type {kind}; "
        "use --target extension or --target shader"
    )


def bridge_schema(overload: OverloadModel, name: str) -> str:
    """The overload's schema under another name, with floats where it has Scalars."""
    text = overload.function.schema.partition("(")[2].replace("Scalar ", "float ").replace("Scalar? ", "float? ")
    return f"{name}({text}"


def _holds(kind: Type, base: BaseTy) -> bool:
    while isinstance(kind, OptionalType | ListType):
        kind = kind.elem
    return isinstance(kind, BaseType) and kind.name is base


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


def python_signature(overload: OverloadModel) -> Signature:
    """The signature of a Python kernel: names and defaults of the schema, keyword-only where the schema says so."""
    flat = overload.schema.arguments
    positional = {argument.name for argument in flat.flat_positional}
    parameters = tuple(
        Parameter(argument.name, _python_type(argument.type), _default(argument), argument.name not in positional)
        for argument in overload.arguments
    )
    kinds = [_python_type(returned.type) for returned in overload.returns]
    returns = "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    return Signature(parameters, returns)


def python_declaration(signature: Signature) -> str:
    """The parameters as Python declares them."""
    words: list[str] = []
    for parameter in signature.parameters:
        if parameter.keyword_only and "*" not in words:
            words.append("*")
        default = f" = {parameter.default}" if parameter.default is not None else ""
        words.append(f"{parameter.name}: {parameter.type}{default}")
    return ", ".join(words)


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


def is_optional_tensor(argument: Argument) -> bool:
    """Whether the argument is a tensor that may be left out."""
    return isinstance(argument.type, OptionalType) and is_tensor(argument.type)
