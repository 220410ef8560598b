"""The parts of C++ host code that an extension and PyTorch's own tree share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.observation import FOLLOWS, ObservedTensor, Size
from .buffers import BoundBuffer, Result
from .host import Host


@dataclass(frozen=True)
class CxxHost(Host):
    """A launch in C++.

    `support`: the namespace of the functions for rows and lists, `mps_support::`. `shaped`: whether outputs have their
    shape already, as in a structured kernel.
    """

    support: str = ""
    shaped: bool = False

    # ---- written differently by the subclasses
    tensor = "Tensor"

    @abstractmethod
    def empty(self, shape: str, like: str, element: str) -> str:
        """A new tensor on the device of `like`, of its dtype or of `element`."""

    @abstractmethod
    def contiguous(self, tensor: str) -> str:
        """A contiguous tensor."""

    @abstractmethod
    def expanded(self, tensor: str, shape: str) -> str:
        """A contiguous tensor of that shape."""

    @abstractmethod
    def resize(self, tensor: str, shape: str) -> str:
        """The statement that gives an output its shape."""

    @abstractmethod
    def dtype_check(self, tensor: str, element: str) -> str:
        """The statement that refuses an output of a different dtype."""

    @abstractmethod
    def of_loss(self, shape: str) -> str:
        """This shape if the loss is not reduced, else the shape of one number."""

    # ---- rows along `dim`
    def rows(self, tensor: str) -> str:
        """A contiguous matrix of the rows of a tensor."""
        return f"{self.support}rows_of({tensor}, {self._dims})"

    def from_rows(self, tensor: str) -> str:
        """The rows that the kernel wrote, in the layout of the tensor."""
        return f"{self.support}from_rows({tensor}_dense, {tensor}.sizes(), {self._dims})"

    def reduced_shape(self, tensor: str, keepdim: str) -> str:
        """The shape of a tensor after each row is reduced to one value. `keepdim`: an argument or `false`."""
        return f"{self.support}reduced_shape({tensor}, {self._dims}, {keepdim})"

    @property
    def row_length(self) -> str:
        """The length of a row along `dim`."""
        return f"{self.launch.inputs[0].name}_dense.size(1)"

    @property
    def row_count(self) -> str:
        """The number of rows."""
        return f"{self.launch.inputs[0].name}_dense.size(0)"

    # ---- the launch
    @property
    def prepared(self) -> list[str]:
        """The lines before the launch: outputs get their shapes, inputs their layout."""
        launch = self.launch
        lines = [f"const int64_t {buffer.name}_number = {self.word_number(buffer)};" for buffer in launch.words]
        for result in launch.results:
            shape = self.shape(result.name, result)
            lines += [
                *([] if shape else [_unknown(result.name)]),
                *_shape_lines(result.name, result.sizes, result.requested_by),
                f"{self.tensor} {result.name} = {self.allocated(result)};",
            ]
        if launch.form == "out" and not self.shaped and not launch.is_elementwise_out:
            for b in launch.outputs:
                lines += self._given(b)
        lines += [f"const {self.tensor} {b.name}_dense = {self._dense(b)};" for b in launch.inputs]
        lines += [f"const {self.tensor} {b.name}_dense = {self._written(b)};" for b in launch.outputs]
        if launch.by_rows:
            lines.append(f"const int64_t row_length = {self.bound_row_length};")
        return lines

    def served(self, function: str) -> list[str]:
        """The lines of a form that calls the function of its out form."""
        launch = self.launch
        source = launch.source.name if launch.source else ""
        empty = [
            f"{self.tensor} {result.name} = {self.empty('{0}', source, result.element)};" for result in launch.results
        ]
        words = [
            *(argument.name for argument in launch.overload.arguments),
            *(result.name for result in launch.results),
        ]
        return [*empty, f"return {function}({', '.join(words)});"]

    @property
    def threads(self) -> str:
        """The expression for the number of threads."""
        launch = self.launch
        if launch.row_dim:
            return self.row_count
        if launch.thread_per_matrix and launch.source:
            return f"{self.support}matrix_count({launch.source.name}.sizes())"
        name = (launch.outputs or launch.tensors)[0].name
        return f"row_length ? {name}.numel() / row_length : 0" if launch.thread_per_row else f"{name}_dense.numel()"

    @property
    def first_tensor(self) -> str:
        """The expression that binds the first tensor."""
        return f"{self.launch.first_tensor}_dense"

    def sizes(self, tensor: str) -> str:
        """The shape of a tensor."""
        return f"{tensor}.sizes()"

    def last_size(self, tensor: str) -> str:
        """The size of a tensor's last dimension; 1 for a 0-dim tensor."""
        return f"{tensor}.dim() ? {tensor}.size(-1) : 1"

    @property
    def no_dimensions(self) -> str:
        """The shape of a 0-dim tensor."""
        return "{}"

    def bound_tensor(self, buffer: BoundBuffer) -> str:
        """The expression that binds a tensor."""
        return f"{buffer.name}_dense"

    def is_given(self, argument: str) -> str:
        """The number that says whether an optional argument is given."""
        return f"static_cast<int64_t>({argument}.has_value())"

    def bound_sizes(self, tensor: str) -> str:
        """The expression that binds the sizes of a tensor."""
        return f"{self.support}list_of({tensor}.sizes())"

    def bound_list(self, argument: str, is_optional: bool) -> str:
        """The expression that binds a list of numbers."""
        return f"{self.support}list_of({argument})"

    def number(self, buffer: BoundBuffer) -> str:
        """The expression that binds a number."""
        name = self.launch.argument(buffer)
        value = f"{name}.value_or(0)" if buffer.optional else name
        return f"static_cast<{buffer.host}>({value})"

    def word_number(self, buffer: BoundBuffer) -> str:
        """The number that the shader gets for a word."""
        argument = self.launch.argument(buffer)
        numbers = ", ".join(f'{{"{word}", {number}}}' for word, number in buffer.number_of.items())
        return f'{self.support}number_of("{argument}", {argument}, {{{numbers}}})'

    def shape(self, name: str, result: Result | ObservedTensor) -> str:
        """The shape of the result or output `name`; empty if it is not known."""
        shape = f"{name}_shape" if result.sizes and self.launch.source else self.shape_by_rule(result.shape)
        return self.of_loss(shape) if result.is_loss and shape else shape

    def allocated(self, result: Result) -> str:
        """The expression that allocates a result; without a rule like the first input, for the author to change."""
        source = self.launch.source
        if source is None:
            return self.empty("{0}", "", result.element)
        shape = self.shape(result.name, result)
        return self.empty(shape or f"{source.name}.sizes()", source.name, result.element)

    def _given(self, buffer: BoundBuffer) -> list[str]:
        """The lines that check an output's dtype and give it its shape."""
        seen, name = self.launch.observed_output(buffer), buffer.name
        if seen is None:
            return []
        element = self.launch.element_of(buffer)
        checks = [] if element == FOLLOWS or name in self.launch.in_rows else [self.dtype_check(name, element)]
        shape = self.shape(name, seen)
        return [
            *checks,
            *_shape_lines(name, seen.sizes, seen.requested_by),
            self.resize(name, shape) if shape else _unknown(name),
        ]

    def _dense(self, buffer: BoundBuffer) -> str:
        launch, name = self.launch, buffer.name
        if buffer.optional:
            argument = launch.argument(buffer)
            stand_in = f"{launch.source.name}_dense" if launch.source else f"{self.tensor}()"
            return f"{argument}.has_value() ? {self.contiguous(f'(*{argument})')} : {stand_in}"
        if name in launch.in_rows:
            return self.rows(name)
        if launch.outputs and (
            launch.is_elementwise_out or (len(launch.broadcast_inputs) > 1 and buffer in launch.broadcast_inputs)
        ):
            return self.expanded(name, f"{launch.outputs[0].name}.sizes()")
        return self.contiguous(name)

    def _written(self, buffer: BoundBuffer) -> str:
        """A tensor that the kernel can write; it has the old values if the kernel reads them."""
        launch, name = self.launch, buffer.name
        if name in launch.in_rows:
            rows = f"{launch.inputs[0].name}_dense"
            return self.empty(f"{rows}.sizes()", rows, launch.element_of(buffer))
        if name in {result.name for result in launch.results}:
            return name
        if buffer in launch.read:
            return self.contiguous(name)
        like = launch.source.name if launch.source and buffer.metal == "T" else name
        fits = f" && {name}.scalar_type() == {like}.scalar_type()" if like != name else ""
        return f"{name}.is_contiguous(){fits} ? {name} : {self.empty(f'{name}.sizes()', like, FOLLOWS)}"

    @property
    def _dims(self) -> str:
        """The dimensions of a row."""
        return f"{self.support}dims({self.launch.row_dim})"


def _unknown(name: str) -> str:
    """The comment in place of a shape that no observed call explains."""
    return f"// Set the shape of {name} here: no rule holds in all observed calls."


def _shape_lines(name: str, sizes: Sequence[Size], requested_by: str) -> list[str]:
    """The statements that build a shape from its dimensions."""
    leading = [size for size in sizes if size.what == "leading"]
    listed = ", ".join(_size(size) for size in sizes if size not in leading)
    lines = []
    if leading:
        of, dropped = leading[0].of, leading[0].place
        less = f"std::min<int64_t>({of}.dim(), 1)" if dropped == 1 else str(dropped)
        end = f"{of}.sizes().end(){f' - {less}' if dropped else ''}"
        lines.append(f"std::vector<int64_t> {name}_shape({of}.sizes().begin(), {end});")
        lines += [f"{name}_shape.insert({name}_shape.end(), {{{listed}}});"] if listed else []
    elif listed:
        lines.append(f"std::vector<int64_t> {name}_shape{{{listed}}};")
    if lines and requested_by:
        lines.append(f"if (!{requested_by}) {{ {name}_shape.assign(1, 0); }}")
    return lines if len(lines) != 1 else [f"const {lines[0]}"]


def _size(size: Size) -> str:
    if size.otherwise:
        return f"{size.requested_by} ? {_size(replace(size, otherwise=None))} : {_size(size.otherwise)}"
    length = f"{size.of}.size({size.place})"
    return {
        "lesser": f"std::min<int64_t>({size.of}.size(-2), {size.of}.size(-1))",
        "size": length,
        "pairs": f"{length} * ({length} - 1) / 2",
        "count": f"{size.of}.numel()",
        "item": f"{size.of}[{size.place}]",
        "fixed": str(size.place),
    }.get(size.what, size.of)


def holds_scalar(kind: Type | None) -> bool:
    """Whether a type is a Scalar, optional or not."""
    inner = kind.elem if isinstance(kind, OptionalType | ListType) else kind
    return isinstance(inner, BaseType) and inner.name is BaseTy.Scalar
