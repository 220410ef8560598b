"""The host side of a launch in PyTorch's own tree, with the tree's helper functions and namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchgen.model import BaseType

from .aten_host import AtenHost
from .buffers import BoundBuffer
from .choices import REDUCTIONS

_LONGEST_LINE = 120
# What `at::native` sees without the namespace before it.
_OF_AT = re.compile(
    r"(?<![\w:])(?:::)?at::(?=(?:Tensor|TensorList|ITensorListRef|IntArrayRef|OptionalIntArrayRef|Scalar|ScalarType|"
    r"Generator|Layout|Device|MemoryFormat|TensorOptions|k[A-Z]\w*)\b)"
)


@dataclass(frozen=True)
class UpstreamHost(AtenHost):
    """A launch in the style of a file of `aten/src/ATen/native/mps/operations`."""

    tensor = "Tensor"

    def empty(self, shape: str, like: str, element: str) -> str:
        """A new tensor on the device of `like`, of its dtype or of `element`."""
        return _OF_AT.sub("", super().empty(shape, like, element))

    def resize(self, tensor: str, shape: str) -> str:
        """The statement that gives an output its shape."""
        return super().resize(tensor, shape).removeprefix("at::native::")

    def dtype_check(self, tensor: str, element: str) -> str:
        """The statement that refuses an output of a different dtype."""
        return _OF_AT.sub("", super().dtype_check(tensor, element)).replace(', "', ',\n              "', 1)

    def of_loss(self, shape: str) -> str:
        """This shape if the loss is not reduced, else the shape of one number."""
        return _OF_AT.sub("", super().of_loss(shape))

    def copied(self, target: str, source: str) -> str:
        """The statement that copies values into a tensor, unless it is the same tensor."""
        return super().copied(target, source).replace("{ ", "{\n    ").replace(" }", "\n  }")

    def word_number(self, buffer: BoundBuffer) -> str:
        """The number that the shader gets for a word; for a reduction, the value of torch's own enum."""
        if buffer.choices != REDUCTIONS:
            return super().word_number(buffer)
        return f"static_cast<int64_t>(get_reduction_enum({self.launch.argument(buffer)}))"

    @property
    def prepared(self) -> list[str]:
        """The lines before the launch; a long conditional expression is split into three."""
        return [_broken(line) for line in super().prepared]

    # ---- rows along one dimension, which is moved to the end; several go through functions that the file brings
    @property
    def _along_one(self) -> str:
        dim = self.launch.row_dim
        return dim if isinstance(self.launch.type_of(dim), BaseType) else ""

    def rows(self, tensor: str) -> str:
        """A contiguous matrix of the rows of a tensor."""
        return f"{tensor}.movedim({self._along_one}, -1).contiguous()" if self._along_one else super().rows(tensor)

    def from_rows(self, tensor: str) -> str:
        """The rows that the kernel wrote, in the layout of the tensor."""
        return f"{tensor}_dense.movedim(-1, {self._along_one})" if self._along_one else super().from_rows(tensor)

    def reduced_shape(self, tensor: str, keepdim: str) -> str:
        """The shape of a tensor after each row is reduced to one value. `keepdim`: an argument or `false`."""
        if not self._along_one:
            return super().reduced_shape(tensor, keepdim)
        return f"at::meta::get_reduction_shape({tensor}, {self._along_one}, {keepdim})"

    @property
    def row_length(self) -> str:
        """The length of a row along `dim`."""
        name = self.launch.inputs[0].name
        return f"{name}.dim() ? {name}.size({self._along_one}) : 1" if self._along_one else super().row_length

    @property
    def row_count(self) -> str:
        """The number of rows."""
        if not self._along_one:
            return super().row_count
        reduced = [buffer.name for buffer in self.launch.outputs if self.launch.shape_of(buffer) == "reduced"]
        name = self.launch.inputs[0].name
        return f"{reduced[0]}.numel()" if reduced else f"row_length ? {name}.numel() / row_length : 0"

    @property
    def profiled(self) -> str:
        """The tensors passed to the profiler: the inputs that are not optional."""
        names = [f"{buffer.name}_dense" for buffer in self.launch.inputs if not buffer.optional]
        return ", ".join(names or [f"{buffer.name}_dense" for buffer in self.launch.outputs])

    @property
    def arguments(self) -> str:
        """The bound arguments, after the encoder; one a line if they do not fit into one line."""
        words = ["encoder", *self.bound]
        indent = " " * len("        mtl_setArgs(")
        line = ", ".join(words)
        return line if len(f"{indent}{line});") <= _LONGEST_LINE else f",\n{indent}".join(words)

    @property
    def returned(self) -> str:
        """What the function returns."""
        parts = self.launch.returned
        return f"{{{', '.join(parts)}}}" if len(parts) > 1 else (parts[0] if parts else "")


def _broken(line: str) -> str:
    if len(f"  {line}") <= _LONGEST_LINE or " = " not in line:
        return line
    before, equals, value = line.partition(" = ")
    indent = "\n      "
    return f"{before}{equals.rstrip()}{indent}{value.replace(' ? ', f'{indent}? ').replace(' : ', f'{indent}: ')}"


def in_at_native(head: str) -> str:
    """The head of a definition in the style of `at::native`: no namespaces, and one parameter a line if it is long."""
    plain = _OF_AT.sub("", head).replace("::std::", "std::").replace(" & ", "& ").replace(" &", "&")
    plain = re.sub(r",(?=\S)", ", ", plain)
    if plain.startswith("TORCH_IMPL_FUNC"):
        plain = plain.replace(")(", ")\n(", 1)
    name, _, parameters = plain.rpartition("(")
    before = name.rpartition("\n")[2]
    if len(before) + len(parameters) + len("( {") <= _LONGEST_LINE:
        return plain
    between = ",\n" + " " * (len(before) + 1)
    return f"{name}({between.join(re.split(r', (?![^<>]*>)', parameters))}"
