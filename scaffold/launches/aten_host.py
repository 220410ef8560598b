"""The host side of a launch in Objective-C++ on ATen: for an extension of one release, and for PyTorch itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgen import local
from torchgen.api.types import DispatcherSignature
from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.model import OverloadModel
from ..operators.observation import FOLLOWS
from .buffers import BoundBuffer
from .cxx_host import CxxHost, holds_scalar
from .signatures import Signature, SignatureParameter

# Argument types that torch's pybind11 casters know.
_BINDABLE = frozenset(
    (
        *(BaseTy.Tensor, BaseTy.int, BaseTy.SymInt, BaseTy.float, BaseTy.bool, BaseTy.Scalar, BaseTy.str),
        *(BaseTy.Device, BaseTy.Layout, BaseTy.MemoryFormat, BaseTy.Generator),
    )
)
SCALAR_TYPES = {
    "bool": "kBool",
    "int64": "kLong",
    "int32": "kInt",
    "int16": "kShort",
    "int8": "kChar",
    "uint8": "kByte",
    "uint32": "kUInt32",
    "uint64": "kUInt64",
    "complex64": "kComplexFloat",
    "float32": "kFloat",
}


@dataclass(frozen=True)
class AtenHost(CxxHost):
    """A launch in Objective-C++ with ATen."""

    @cached_property
    def signature(self) -> Signature:
        """The signature that the dispatcher requires of a kernel, with plain integers instead of symbolic ones."""
        return _signature(self.launch.overload)

    @property
    def bindable(self) -> bool:
        """Whether pybind11 can pass every argument."""
        return all(_is_bindable(argument.type) for argument in self.launch.overload.arguments)

    @property
    def dtype_rule(self) -> str:
        """The TensorIterator option that refuses the output dtypes which the CPU refuses."""
        (output,) = self.launch.outputs
        if self.launch.element_of(output) != FOLLOWS:
            return "check_all_same_dtype(false)"
        if self.launch.observation is not None and self.launch.observation.same_dtype:
            return "check_all_same_dtype(true)"
        return "promote_inputs_to_common_dtype(true).enforce_safe_casting_to_output(true)"

    tensor = "at::Tensor"

    def empty(self, shape: str, like: str, element: str) -> str:
        """A new tensor on the device of `like`, of its dtype or of `element`."""
        options = f"{like}.options()" if like else "at::TensorOptions().device(at::kMPS)"
        return f"at::empty({shape}, {options}{'' if element == FOLLOWS else f'.dtype(at::{SCALAR_TYPES[element]})'})"

    def contiguous(self, tensor: str) -> str:
        """A contiguous tensor."""
        return f"{tensor}.contiguous()"

    def expanded(self, tensor: str, shape: str) -> str:
        """A contiguous tensor of that shape."""
        return f"{tensor}.expand({shape}).contiguous()"

    def resize(self, tensor: str, shape: str) -> str:
        """The statement that gives an output its shape."""
        return f"at::native::resize_output({tensor}, {shape});"

    def dtype_check(self, tensor: str, element: str) -> str:
        """The statement that refuses an output of a different dtype."""
        name, dtype = self.launch.overload.function.operator, f"at::{SCALAR_TYPES[element]}"
        message = f'"{name}: expected {tensor} of dtype ", {dtype}, ", but it has ", {tensor}.scalar_type()'
        return f"TORCH_CHECK({tensor}.scalar_type() == {dtype}, {message});"

    def of_loss(self, shape: str) -> str:
        """This shape if the loss is not reduced, else the shape of one number."""
        return f"reduction == at::Reduction::None ? at::IntArrayRef({shape}) : at::IntArrayRef()"

    def copied(self, target: str, source: str) -> str:
        """The statement that copies values into a tensor, unless it is the same tensor."""
        if source == f"{target}_dense":
            return f"if (!{source}.is_same({target})) {{ {target}.copy_({source}); }}"
        return f"{target}.copy_({source});"

    def broadcast(self, shapes: list[str]) -> str:
        """The shape that tensors broadcast to."""
        broadcast = shapes[0] if shapes else "{}"
        for shape in shapes[1:]:
            broadcast = f"at::infer_size({broadcast}, {shape})"
        return broadcast

    def number(self, buffer: BoundBuffer) -> str:
        """A number in the form in which it is bound."""
        name = self.launch.argument(buffer)
        if not holds_scalar(self.launch.type_of(name)):
            return super().number(buffer)
        return f"{name}.has_value() ? {name}->to<float>() : 0.0f" if buffer.optional else f"{name}.to<float>()"

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
