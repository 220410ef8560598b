"""What templates see of a kernel: its names, signatures, buffers and the lines that differ between operators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.kinds import Kind
from ..operators.model import OverloadModel
from .launch import Buffer, Launch, Result, launch_of
from .signatures import Signature, bridge_schema, cpp_signature, python_declaration, python_signature, stable_signature

ROW_KINDS = (Kind.REDUCTION, Kind.SCAN, Kind.SORT)

# Argument types that torch's pybind11 casters know.
_BINDABLE = frozenset(
    (
        *(BaseTy.Tensor, BaseTy.int, BaseTy.SymInt, BaseTy.float, BaseTy.bool, BaseTy.Scalar, BaseTy.str),
        *(BaseTy.Device, BaseTy.Layout, BaseTy.MemoryFormat, BaseTy.Generator),
    )
)


@dataclass(frozen=True)
class KernelContext:
    """One overload, for templates."""

    overload: OverloadModel
    kind: Kind

    @property
    def id(self) -> str:
        """A name in C++, Metal and Python."""
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
    def ops_name(self) -> str:
        """The overload's structure in `at::_ops`."""
        return self.overload.identifier

    @cached_property
    def cpp(self) -> Signature:
        """The signature in C++."""
        return cpp_signature(self.overload)

    @cached_property
    def stable(self) -> Signature:
        """The signature in the stable C++ API. Raises InexpressibleError."""
        return stable_signature(self.overload)

    @cached_property
    def py(self) -> Signature:
        """The signature in Python."""
        return python_signature(self.overload)

    @property
    def py_declared(self) -> str:
        """The parameters in Python."""
        return python_declaration(self.py)

    @cached_property
    def launch(self) -> Launch:
        """The buffers that the kernel binds."""
        return launch_of(self.overload)

    @property
    def results(self) -> tuple[Result, ...]:
        """The tensors that the host allocates."""
        return self.launch.results

    @property
    def left(self) -> tuple[str, ...]:
        """The arguments that are not bound."""
        return self.launch.left

    @property
    def checked(self) -> list[str]:
        """The tensors of which the host checks the device: those that are always there."""
        results = {result.name for result in self.results}
        names = {argument.name for argument in self.overload.arguments}
        return [b.name for b in self.launch.tensors if b.name not in results and b.name in names]

    @property
    def buffers(self) -> list[Buffer]:
        """What the shader declares, the length of a row included where the kind works by rows."""
        extra = [Buffer("row_length", "long", host="int64_t")] if self.kind in ROW_KINDS else []
        return [*self.launch.buffers, *extra]

    @property
    def first_tensor(self) -> str:
        """The tensor whose dtype chooses the instantiation; empty where there is none."""
        tensors = [buffer for buffer in self.launch.tensors if buffer.metal == "T"] or list(self.launch.tensors)
        return tensors[0].name if tensors else ""

    @property
    def row_length(self) -> str:
        """The C++ expression for the length of a row; empty for kinds that do not work by rows."""
        if self.kind not in ROW_KINDS:
            return ""
        if not self.launch.inputs:
            return "1"
        name = self.launch.inputs[0].name
        return f"{name}.dim() ? {name}.size(-1) : 1"

    @property
    def threads(self) -> str:
        """The C++ expression for the number of threads."""
        outputs = self.launch.outputs
        name = outputs[0].name if outputs else self.first_tensor
        return f"{name}_dense.numel()"

    def allocated(self, result: Result) -> str:
        """How the host allocates a result, in C++: like the first input, for the author to change."""
        dtype = ".dtype(at::kLong)" if result.metal == "long" else ""
        if self.launch.inputs:
            first = self.launch.inputs[0].name
            return f"at::empty({first}.sizes(), {first}.options(){dtype})"
        return f"at::empty({{0}}, at::TensorOptions().device(at::kMPS){dtype})"

    def stable_allocated(self, result: Result) -> str:
        """How the host allocates a result with the stable API."""
        device = "torch::stable::Device(torch::headeronly::DeviceType::MPS)"
        if not self.launch.inputs:
            return f"torch::stable::empty({{0}}, std::nullopt, std::nullopt, {device})"
        first = self.launch.inputs[0].name
        if result.metal == "long":
            return f"torch::stable::new_empty({first}, {first}.sizes(), torch::headeronly::ScalarType::Long)"
        return f"torch::stable::empty_like({first})"

    @property
    def bound_dense(self) -> list[str]:
        """The C++ expressions that are bound, in the order of the buffers."""
        return [self._bound(buffer, stable=False) for buffer in self.buffers]

    @property
    def stable_bound_dense(self) -> list[str]:
        """The same with the stable API."""
        return [self._bound(buffer, stable=True) for buffer in self.buffers]

    def _bound(self, buffer: Buffer, *, stable: bool) -> str:
        if not buffer.host:
            return f"{buffer.name}_dense"
        if buffer.name == "row_length":
            return buffer.name
        name = self._plain(buffer)
        is_scalar = self._type(name) is BaseTy.Scalar
        if is_scalar and not stable:
            return f"{name}.to<float>()"
        return f"static_cast<{buffer.host}>({name})"

    @cached_property
    def _names(self) -> dict[str, Type]:
        return {argument.name: argument.type for argument in self.overload.arguments}

    def _type(self, name: str) -> BaseTy | None:
        kind = self._names.get(name)
        return kind.name if isinstance(kind, BaseType) else None

    @property
    def returned(self) -> str:
        """What the C++ function returns."""
        parts = self._returned_parts()
        if len(parts) < 2:
            return parts[0] if parts else ""
        return f"{self.cpp.returns}({', '.join(parts)})"

    @property
    def returned_by_value(self) -> str:
        """What the function with the stable API returns."""
        parts = self._returned_parts()
        return f"{{{', '.join(parts)}}}" if len(parts) > 1 else (parts[0] if parts else "")

    @property
    def returned_python(self) -> str:
        """What the Python function returns."""
        return ", ".join("()" if part == "{}" else part for part in self._returned_parts())

    def _returned_parts(self) -> list[str]:
        """A written argument or a result for each value; an empty value of a type that is no tensor."""
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
    def is_floating_elementwise(self) -> bool:
        """Whether the runtime's elementwise launch serves it: one output, one or two inputs, numbers."""
        launch = self.launch
        return (
            self.kind.elementwise
            and self.form == "out"
            and not launch.left
            and len(launch.outputs) == 1
            and len(launch.inputs) in (1, 2)
            and all(buffer.metal == "T" for buffer in launch.tensors)
        )

    @property
    def py_lines(self) -> list[str]:
        """The parameters in Python, one a line."""
        lines: list[str] = []
        for parameter in self.py.parameters:
            if parameter.keyword_only and "*" not in lines:
                lines.append("*")
            default = f" = {parameter.default}" if parameter.default is not None else ""
            lines.append(f"{parameter.name}: {parameter.type}{default}")
        return lines

    @property
    def py_overload(self) -> str:
        """The overload as an attribute of `torch.ops.aten`."""
        return f"{self.overload.function.operator}.{self.overload.overload}"

    @property
    def py_inputs(self) -> list[str]:
        """The arguments before the outputs."""
        return [argument.name for argument in self.overload.inputs]

    @property
    def py_floats(self) -> list[str]:
        """The numbers as Python floats; one zero where there is none, since a buffer cannot be empty."""
        return [f"float({self._plain(buffer)})" for buffer in self.launch.numbers] or ["0.0"]

    @property
    def py_row_length(self) -> str:
        """The Python expression for the length of a row."""
        if not self.launch.inputs:
            return "1"
        name = self.launch.inputs[0].name
        return f"{name}.shape[-1] if {name}.dim() else 1"

    def py_allocated(self, result: Result) -> str:
        """How Python allocates a result: like the first input, for the author to change."""
        dtype = ", dtype=torch.int64" if result.metal == "long" else ""
        if self.launch.inputs:
            return f"torch.empty_like({self.launch.inputs[0].name}{dtype})"
        return f'torch.empty(0, device="mps"{dtype})'

    @property
    def py_bound(self) -> list[str]:
        """The Python expressions that are bound, in the order of the buffers."""
        words = []
        for buffer in self.buffers:
            if not buffer.host or buffer.name == "row_length":
                words.append(buffer.name)
            else:
                words.append(f"{'float' if buffer.host == 'float' else 'int'}({self._plain(buffer)})")
        return words

    def _plain(self, buffer: Buffer) -> str:
        """The argument's own name, which the buffer's may extend where Metal keeps the word for itself."""
        return buffer.name if buffer.name in self._names else buffer.name.removesuffix("_")

    @property
    def bindable(self) -> bool:
        """Whether pybind11 can pass every argument."""
        return all(_is_bindable(argument.type) for argument in self.overload.arguments)

    @property
    def bridge(self) -> str:
        """The schema with floats in place of Scalars."""
        return bridge_schema(self.overload, self.id)

    @property
    def bridge_call(self) -> str:
        """The arguments with which Python calls the bridged operator."""
        words = []
        for parameter, argument in zip(self.py.parameters, self.overload.arguments, strict=True):
            is_optional = isinstance(argument.type, OptionalType)
            scalar = argument.type.elem if is_optional else argument.type
            value = parameter.name
            if isinstance(scalar, BaseType) and scalar.name is BaseTy.Scalar:
                value = f"None if {value} is None else float({value})" if is_optional else f"float({value})"
            words.append(f"{parameter.name}={value}" if parameter.keyword_only else value)
        return ", ".join(words)


def _is_bindable(kind: Type) -> bool:
    if isinstance(kind, OptionalType):
        return _is_bindable(kind.elem)
    if isinstance(kind, ListType):
        return isinstance(kind.elem, BaseType) and kind.elem.name in (BaseTy.int, BaseTy.SymInt)
    return isinstance(kind, BaseType) and kind.name in _BINDABLE
