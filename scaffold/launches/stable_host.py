"""The host side of a launch in Objective-C++ on PyTorch's stable interface, and the Python that bridges its gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..errors import InexpressibleError
from ..operators.model import OverloadModel
from ..operators.observation import FOLLOWS
from .cxx_host import CxxHost
from .python_host import PythonHost
from .signatures import Signature, SignatureParameter

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
_NAMES = {
    "bool": "Bool",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "complex64": "ComplexFloat",
    "float32": "Float",
}
# What a type needs to be passed: before these releases the shim cannot convert it.
STABLE_SINCE = (2, 10)
STABLE_GENERATOR_SINCE = (2, 13)


@dataclass(frozen=True)
class StableHost(CxxHost):
    """A launch as Objective-C++ writes it with the stable interface."""

    @cached_property
    def signature(self) -> Signature:
        """The signature in the stable C++ API. Outputs come as tensors by value: a handle, not a copy.

        Raises InexpressibleError that names the argument that cannot be passed.
        """
        return _signature(self.launch.overload)

    @property
    def needs_bridge(self) -> bool:
        """Whether a Scalar is in the schema: the stable shim has none, so that Python passes a float in its place."""
        return any(_holds(argument.type, BaseTy.Scalar) for argument in self.launch.overload.arguments)

    def empty(self, shape: str, like: str, element: str) -> str:
        """A new tensor on the device of `like`, of its dtype or of the one that is named."""
        if not like:
            device = "torch::stable::Device(torch::headeronly::DeviceType::MPS)"
            return f"torch::stable::empty({shape}, std::nullopt, std::nullopt, {device})"
        dtype = f"{like}.scalar_type()" if element == FOLLOWS else f"torch::headeronly::ScalarType::{_NAMES[element]}"
        return f"torch::stable::new_empty({like}, {shape}, {dtype})"

    def contiguous(self, tensor: str) -> str:
        """A tensor with its elements behind each other."""
        return f"torch::stable::contiguous({tensor})"

    def expanded(self, tensor: str, shape: str) -> str:
        """A contiguous tensor of that shape."""
        output = self.launch.outputs[0].name
        wanted = "shape" if self.launch.is_elementwise_out else f"stable_support::vector_of({shape})"
        return f"stable_support::expanded({tensor}, {wanted}, {output})"

    def resize(self, tensor: str, shape: str) -> str:
        """The statement that gives an output its shape."""
        return f"stable_support::resize({tensor}, stable_support::vector_of({shape}));"

    def dtype_check(self, tensor: str, element: str) -> str:
        """The statement that refuses an output of another dtype."""
        name, dtype = self.launch.overload.function.operator, f"torch::headeronly::ScalarType::{_NAMES[element]}"
        return f'STD_TORCH_CHECK({tensor}.scalar_type() == {dtype}, "{name}: {tensor} has to be of dtype {element}");'

    def of_loss(self, shape: str) -> str:
        """The shape where a loss is wanted for each, and that of one number else."""
        return f"reduction == 0 ? stable_support::vector_of({shape}) : std::vector<int64_t>{{}}"

    def copied(self, target: str, source: str) -> str:
        """The statement that copies values, unless they are there."""
        if source == f"{target}_dense":
            copied = f"torch::stable::copy_(const_cast<Tensor&>({target}), {source});"
            return f"if ({source}.get() != {target}.get()) {{ {copied} }}"
        return f"torch::stable::copy_(const_cast<Tensor&>({target}), {source});"

    def broadcast(self, shapes: list[str]) -> str:
        """The shape that tensors broadcast to."""
        names = ", ".join(buffer.name for buffer in self.launch.spread)
        return f"stable_support::broadcast_shape({self.launch.spread[0].name}, {{{names}}})"

    @property
    def returned(self) -> str:
        """What the function returns."""
        parts = self.launch.returned
        return f"{{{', '.join(parts)}}}" if len(parts) > 1 else (parts[0] if parts else "")

    @property
    def bridge_schema(self) -> str:
        """The overload's schema under another name, with floats where it has Scalars."""
        schema = self.launch.overload.function.schema.partition("(")[2]
        return f"{self.launch.id}({schema.replace('Scalar ', 'float ').replace('Scalar? ', 'float? ')}"

    @property
    def bridge_parameters(self) -> str:
        """The parameters of the Python function that calls the bridged operator."""
        return ", ".join(PythonHost(self.launch).parameters)

    @property
    def bridge_call(self) -> str:
        """The arguments with which that function calls it."""
        words = []
        parameters = PythonHost(self.launch).signature.parameters
        for parameter, argument in zip(parameters, self.launch.overload.arguments, strict=True):
            is_optional = isinstance(argument.type, OptionalType)
            scalar = argument.type.elem if is_optional else argument.type
            value = parameter.name
            if isinstance(scalar, BaseType) and scalar.name is BaseTy.Scalar:
                value = f"None if {value} is None else float({value})" if is_optional else f"float({value})"
            words.append(f"{parameter.name}={value}" if parameter.keyword_only else value)
        return ", ".join(words)


def stable_since(overloads: Sequence[OverloadModel]) -> tuple[int, int]:
    """The first release whose stable ABI can pass everything that these overloads take."""
    takes = (argument.type for overload in overloads for argument in overload.arguments)
    return STABLE_GENERATOR_SINCE if any(_holds(kind, BaseTy.Generator) for kind in takes) else STABLE_SINCE


def _signature(overload: OverloadModel) -> Signature:
    parameters = tuple(
        SignatureParameter(argument.name, _stable_type(argument.type, overload, argument.name))
        for argument in overload.arguments
    )
    returns = [_stable_type(returned.type, overload, "its return value") for returned in overload.returns]
    joined = "void" if not returns else returns[0] if len(returns) == 1 else f"std::tuple<{', '.join(returns)}>"
    return Signature(parameters, joined)


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


def _holds(kind: Type, base: BaseTy) -> bool:
    while isinstance(kind, OptionalType | ListType):
        kind = kind.elem
    return isinstance(kind, BaseType) and kind.name is base
