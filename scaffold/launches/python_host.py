"""The host side of a launch in Python, which calls a shader of `torch.mps.compile_shader`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torchgen.model import Argument, BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.model import OverloadModel
from ..operators.observation import FOLLOWS, ObservedTensor, Size
from .buffers import BoundBuffer, Result
from .host import Host
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
_LONGEST_LINE = 120
# Of the kernels' runtime: the functions that a host may need.
_OUTPUT_FUNCTIONS = ("check_outputs", "contiguous_output", "empty_results", "finish", "resize_output")
_OPERAND_FUNCTIONS = ("number_of",)
_ROW_FUNCTIONS = ("from_rows", "matrix_count", "reduced_shape", "rows_of", "sizes_of")


@dataclass(frozen=True)
class PythonHost(Host):
    """A launch in Python."""

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
        """The numbers as Python floats; one zero if there is none, since a buffer cannot be empty."""
        return [f"float({self.launch.argument(buffer)})" for buffer in self.launch.numbers] or ["0.0"]

    @property
    def runtime(self) -> dict[str, list[str]]:
        """The names that the function imports from the runtime's modules, by module."""
        text = "\n".join([*self.prepared, *self.finished, *self.bound])
        functions = {"operands": _OPERAND_FUNCTIONS, "outputs": _OUTPUT_FUNCTIONS, "row_layout": _ROW_FUNCTIONS}
        used = {module: [name for name in names if f"{name}(" in text] for module, names in functions.items()}
        return {module: names for module, names in used.items() if names}

    @cached_property
    def prepared(self) -> list[str]:
        """The lines before the launch: outputs get their shapes, inputs their layout."""
        launch = self.launch
        dense = [self._dense(buffer) for buffer in launch.inputs]
        return [*self._word_numbers(), *self._shaped(), *dense, *self._written(), *self._threads()]

    def _word_numbers(self) -> list[str]:
        """The numbers of words; an unknown word is refused before anything is allocated."""
        return [
            _call(f"{buffer.name}_number = number_of", [f'"{argument}"', argument, _mapping(buffer.number_of)])
            for buffer in self.launch.words
            for argument in [self.launch.argument(buffer)]
        ]

    @property
    def threads(self) -> str:
        """The expression for the number of threads."""
        launch = self.launch
        if launch.row_dim:
            return f"{launch.inputs[0].name}_dense.shape[0]"
        if launch.thread_per_matrix and launch.source:
            return f"matrix_count({launch.source.name})"
        if launch.thread_per_row:
            return f"{launch.outputs[0].name}.numel() // row_length if row_length else 0"
        return f"{(launch.outputs or launch.tensors)[0].name}.numel()"

    @property
    def launched(self) -> list[str]:
        """The lines of the launch itself, inside of `if threads`."""
        source = self.chosen_by
        name = f'f"{self.launch.id}_{{METAL_TYPES[{source}.dtype]}}"'
        return [
            _call("kernel = _shader.kernel", [name, f"{source}.device"], depth=2),
            _call("kernel", [*self.bound, "threads", "threads=threads"], depth=2),
        ]

    @property
    def first_tensor(self) -> str:
        """The first tensor."""
        return self.launch.first_tensor

    @property
    def row_length(self) -> str:
        """The length of a row along `dim`."""
        return f"{self.launch.inputs[0].name}_dense.shape[1]"

    def sizes(self, tensor: str) -> str:
        """The shape of a tensor."""
        return f"{tensor}.shape"

    def last_size(self, tensor: str) -> str:
        """The size of a tensor's last dimension; 1 for a 0-dim tensor."""
        return f"{tensor}.shape[-1] if {tensor}.dim() else 1"

    def reduced_shape(self, tensor: str, keepdim: str) -> str:
        """The shape of a tensor after each row is reduced to one value. `keepdim`: an argument or `false`."""
        return f"reduced_shape({tensor}, dim{', keepdim' if keepdim == 'keepdim' else ''})"

    def broadcast(self, shapes: list[str]) -> str:
        """The shape that tensors broadcast to."""
        return f"torch.broadcast_shapes({', '.join(shapes)})"

    @property
    def no_dimensions(self) -> str:
        """The shape of a 0-dim tensor."""
        return "()"

    def from_rows(self, tensor: str) -> str:
        """The rows that the kernel wrote, in the layout of the tensor."""
        return f"from_rows({tensor}_dense, {tensor}.shape, {self.launch.row_dim})"

    def copied(self, target: str, source: str) -> str:
        """The statement that copies values into a tensor, unless it is the same tensor."""
        return f"finish({target}, {source})" if source == f"{target}_dense" else f"{target}.copy_({source})"

    def bound_tensor(self, buffer: BoundBuffer) -> str:
        """The expression that binds a tensor."""
        return buffer.name if self._is_bare(buffer) else f"{buffer.name}_dense"

    def is_given(self, argument: str) -> str:
        """The number that says whether an optional argument is given."""
        return f"int({argument} is not None)"

    def bound_sizes(self, tensor: str) -> str:
        """The expression that binds the sizes of a tensor."""
        return f"sizes_of({tensor})"

    def bound_list(self, argument: str, is_optional: bool) -> str:
        """The expression that binds a list of numbers."""
        return f"sizes_of({argument}{' or ()' if is_optional else ''})"

    def number(self, buffer: BoundBuffer) -> str:
        """The expression that binds a number."""
        number = "float" if buffer.host == "float" else "int"
        return f"{number}({self.launch.argument(buffer)}{' or 0' if buffer.optional else ''})"

    def _words(self, arguments: Sequence[Argument]) -> tuple[list[str], list[str]]:
        """The arguments of a call: positional ones, then keyword ones."""
        positional = {argument.name for argument in self.launch.overload.schema.arguments.flat_positional}
        words = [argument.name for argument in arguments if argument.name in positional]
        return words, [f"{a.name}={a.name}" for a in arguments if a.name not in positional]

    def _is_bare(self, buffer: BoundBuffer) -> bool:
        """Whether a tensor is bound unchanged, because the function has just allocated it."""
        made = {result.name for result in self.launch.results}
        return buffer.name in made and buffer.name not in self.launch.in_rows

    def _shaped(self) -> list[str]:
        """The statement that checks given outputs and resizes them to the shape of the result."""
        launch = self.launch
        observation = launch.observation
        if launch.form != "out" or observation is None:
            return []
        if not observation.has_meta:
            return self._resized()
        words, named = self._words(launch.overload.inputs)
        outputs = ", ".join(f'"{argument.name}": {argument.name}' for argument in launch.overload.outputs)
        elements = [launch.element_of(buffer) for buffer in launch.outputs]
        follows = f"{launch.source.name}.dtype" if observation.same_dtype and launch.source else "None"
        dtypes = ", ".join(follows if element == FOLLOWS else f"torch.{element}" for element in elements)
        parts = [f"torch.ops.aten.{self.overload}", f"[{', '.join(words)}]", f"{{{outputs}}}", f"[{dtypes}]", *named]
        return [_call("check_outputs", parts)]

    def _resized(self) -> list[str]:
        """The statements that resize outputs of known shape, for an operator without a meta kernel."""
        source = self.launch.source
        seen = [(buffer.name, self.launch.observed_output(buffer)) for buffer in self.launch.outputs]
        shapes = [(name, self._shape(result)) for name, result in seen if result and source]
        return [f"resize_output({name}, {shape})" for name, shape in shapes if shape]

    def _dense(self, buffer: BoundBuffer) -> str:
        """The expression that gives an input the layout that the kernel reads."""
        launch = self.launch
        name = buffer.name
        if buffer.optional:
            stand_in = f"{launch.source.name}_dense" if launch.source else "None"
            return f"{name}_dense = {stand_in} if {name} is None else {name}.contiguous()"
        if name in launch.in_rows:
            return f"{name}_dense = rows_of({name}, {launch.row_dim})"
        if len(launch.broadcast_inputs) > 1 and buffer in launch.broadcast_inputs:
            shape = f"{launch.outputs[0].name}.shape" if launch.form == "out" else self.shape_by_rule("broadcast")
            return f"{name}_dense = {name}.expand({shape}).contiguous()"
        return f"{name}_dense = {name}.contiguous()"

    def _written(self) -> list[str]:
        """Tensors that the kernel writes: allocated results, and given tensors in a layout that it can write."""
        launch = self.launch
        lines = self._allocations()
        results = {result.name for result in launch.results}
        first = launch.inputs[0].name if launch.inputs else ""
        for buffer in launch.outputs:
            name = buffer.name
            if name in launch.in_rows:
                dtype = "" if buffer.metal == "T" else f", dtype={name}.dtype"
                lines.append(f"{name}_dense = torch.empty_like({first}_dense{dtype})")
            elif name not in results and buffer in launch.read:
                lines.append(f"{name}_dense = {name}.contiguous()")
            elif name not in results:
                cast = f", {launch.source.name}.dtype" if buffer.metal == "T" and launch.source else ""
                lines.append(f"{name}_dense = contiguous_output({name}{cast})")
        return lines

    def _allocations(self) -> list[str]:
        launch = self.launch
        rules = {"" if result.is_loss else result.shape for result in launch.results}
        if launch.results and "" in rules and launch.observation and launch.observation.has_meta and launch.source:
            words, named = self._words(launch.overload.arguments)
            call = [f"torch.ops.aten.{self.overload}", f"[{', '.join(words)}]", f"{launch.source.name}.device", *named]
            names = ", ".join(r.name for r in launch.results)
            return [_call(f"{names if len(launch.results) > 1 else f'({names},)'} = empty_results", call)]
        return [f"{result.name} = {self._allocated(result)}" for result in launch.results]

    def _allocated(self, result: Result) -> str:
        """The expression that allocates a result; if its shape is unknown, like the first input."""
        source = self.launch.source
        dtype = f"torch.{result.element}" if result.element != FOLLOWS else f"{source.name}.dtype" if source else ""
        if source is None:
            return f'torch.empty(0, device="mps"{f", dtype={dtype}" if dtype else ""})'
        shape = self._shape(result) or f"{source.name}.shape"
        return f"torch.empty({shape}, dtype={dtype}, device={source.name}.device)"

    def _shape(self, result: Result | ObservedTensor) -> str:
        """The shape of a result; empty if it is not known."""
        shape = _shape(result.sizes) if result.sizes else self.shape_by_rule(result.shape)
        if result.is_loss and shape:
            return f"{shape} if reduction == 0 else ()"
        return f"{shape} if {result.requested_by} else (0,)" if result.requested_by and shape else shape

    def _threads(self) -> list[str]:
        launch = self.launch
        lines = []
        if launch.by_rows:
            lines.append(f"row_length = {self.bound_row_length}")
        return [*lines, f"threads = {self.threads}"] if launch.first_tensor else lines

    @property
    def served(self) -> list[str]:
        """The lines of a form that calls its out form."""
        launch = self.launch
        source = launch.source.name if launch.source else ""
        by = launch.served_by.replace(".", "_")
        positional, named = self._words(launch.overload.arguments)
        words = [*positional, *named]
        lines = []
        for result, output in zip(launch.results, launch.served_outputs, strict=True):
            dtype = f"{source}.dtype" if result.element == FOLLOWS else f"torch.{result.element}"
            lines.append(f"{result.name} = torch.empty(0, dtype={dtype}, device={source}.device)")
            words.append(f"{output}={result.name}")
        return [*lines, _call(f"return {by}", words)]

    @property
    def returned(self) -> str:
        """What the function returns."""
        return ", ".join("()" if part == "{}" else part for part in self.launch.returned)


def _call(head: str, words: Sequence[str], depth: int = 1) -> str:
    """A call at that depth of indentation, with long calls broken into lines like this repository's formatter does."""
    outer, inner = "    " * depth, "    " * (depth + 1)
    joined = ", ".join(words)
    if len(f"{outer}{head}({joined})") <= _LONGEST_LINE:
        return f"{head}({joined})"
    if len(f"{inner}{joined}") <= _LONGEST_LINE:
        return f"{head}(\n{inner}{joined}\n{outer})"
    return "\n".join([f"{head}(", *(f"{inner}{word}," for word in words), f"{outer})"])


def _shape(sizes: Sequence[Size]) -> str:
    """The tuple of a shape's dimensions."""
    return f"({', '.join(map(_size, sizes))},)"


def _mapping(numbers: Mapping[str, int]) -> str:
    entries = [f'"{word}": {number}' for word, number in numbers.items()]
    return f"{{{', '.join(entries)}}}"


def _size(size: Size) -> str:
    if size.otherwise:
        return f"{_size(replace(size, otherwise=None))} if {size.requested_by} else {_size(size.otherwise)}"
    length = f"{size.of}.shape[{size.place}]"
    return {
        "leading": f"*{size.of}.shape[: {size.of}.dim() - {size.place}]" if size.place else f"*{size.of}.shape",
        "size": length,
        "pairs": f"{length} * ({length} - 1) // 2",
        "lesser": f"min({size.of}.shape[-2:])",
        "count": f"{size.of}.numel()",
        "item": f"{size.of}[{size.place}]",
        "fixed": str(size.place),
    }.get(size.what, size.of)


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
        # One number is short for a list of it: `int[2] stride=1`.
        return f"({', '.join([text] * (kind.size or 1))},)"
    return text
