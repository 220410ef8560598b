"""The host side of a launch in Objective-C++ on ATen: for an extension of one release, and for PyTorch itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgen import local
from torchgen.api.types import DispatcherSignature
from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.model import OverloadModel
from .cxx_host import CxxHost
from .launch import BoundBuffer, Result
from .signatures import Signature, SignatureParameter

# Argument types that torch's pybind11 casters know.
_BINDABLE = frozenset(
    (
        *(BaseTy.Tensor, BaseTy.int, BaseTy.SymInt, BaseTy.float, BaseTy.bool, BaseTy.Scalar, BaseTy.str),
        *(BaseTy.Device, BaseTy.Layout, BaseTy.MemoryFormat, BaseTy.Generator),
    )
)


@dataclass(frozen=True)
class AtenHost(CxxHost):
    """A launch as Objective-C++ writes it with ATen."""

    @cached_property
    def signature(self) -> Signature:
        """The signature that the dispatcher asks of a kernel, with plain integers instead of symbolic ones."""
        return _signature(self.launch.overload)

    @property
    def bindable(self) -> bool:
        """Whether pybind11 can pass every argument."""
        return all(_is_bindable(argument.type) for argument in self.launch.overload.arguments)

    def allocated(self, result: Result) -> str:
        """How a result is allocated: like the first input, for the author to change."""
        dtype = ".dtype(at::kLong)" if result.metal == "long" else ""
        if self.launch.inputs:
            first = self.launch.inputs[0].name
            return f"at::empty({first}.sizes(), {first}.options(){dtype})"
        return f"at::empty({{0}}, at::TensorOptions().device(at::kMPS){dtype})"

    def number(self, buffer: BoundBuffer) -> str:
        """A number as the shader takes it."""
        name = self.launch.argument(buffer)
        type_ = self.launch.type_of(name)
        if isinstance(type_, BaseType) and type_.name is BaseTy.Scalar:
            return f"{name}.to<float>()"
        return super().number(buffer)

    @property
    def returned(self) -> str:
        """What the function returns."""
        parts = self.launch.returned
        if len(parts) < 2:
            return parts[0] if parts else ""
        return f"{self.signature.returns}({', '.join(parts)})"


def _signature(overload: OverloadModel) -> Signature:
    with local.parametrize(use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False):
        signature = DispatcherSignature.from_schema(overload.schema, symint=False)
        parameters = tuple(
            SignatureParameter(binding.name, binding.nctype.type.cpp_type()) for binding in signature.arguments()
        )
        return Signature(parameters, signature.returns_type().cpp_type())


def _is_bindable(kind: Type) -> bool:
    if isinstance(kind, OptionalType):
        return _is_bindable(kind.elem)
    if isinstance(kind, ListType):
        return isinstance(kind.elem, BaseType) and kind.elem.name in (BaseTy.int, BaseTy.SymInt)
    return isinstance(kind, BaseType) and kind.name in _BINDABLE
