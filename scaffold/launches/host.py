"""The parts of a launch's host code that Python and C++ share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from .buffers import ROW_LENGTH, BoundBuffer
from .launch import Launch


@dataclass(frozen=True)
class Host(ABC):
    """The host code of a launch, as source text. `NAME_dense` is the contiguous tensor that is bound for `NAME`."""

    launch: Launch

    @property
    @abstractmethod
    def row_length(self) -> str:
        """The length of a row along `dim`."""

    @property
    @abstractmethod
    def first_tensor(self) -> str:
        """The expression that binds the first tensor."""

    @abstractmethod
    def sizes(self, tensor: str) -> str:
        """The shape of a tensor."""

    @abstractmethod
    def last_size(self, tensor: str) -> str:
        """The size of a tensor's last dimension; 1 for a 0-dim tensor."""

    @abstractmethod
    def reduced_shape(self, tensor: str, keepdim: str) -> str:
        """The shape of a tensor after each row is reduced to one value. `keepdim`: an argument or `false`."""

    @abstractmethod
    def broadcast(self, shapes: list[str]) -> str:
        """The shape that tensors broadcast to."""

    @property
    @abstractmethod
    def no_dimensions(self) -> str:
        """The shape of a 0-dim tensor."""

    @abstractmethod
    def from_rows(self, tensor: str) -> str:
        """The rows that the kernel wrote, in the layout of the tensor."""

    @abstractmethod
    def copied(self, target: str, source: str) -> str:
        """The statement that copies values into a tensor, unless it is the same tensor."""

    @abstractmethod
    def bound_tensor(self, buffer: BoundBuffer) -> str:
        """The expression that binds a tensor."""

    @abstractmethod
    def is_given(self, argument: str) -> str:
        """The number that says whether an optional argument is given."""

    @abstractmethod
    def bound_sizes(self, tensor: str) -> str:
        """The expression that binds the sizes of a tensor."""

    @abstractmethod
    def bound_list(self, argument: str, is_optional: bool) -> str:
        """The expression that binds a list of numbers."""

    @abstractmethod
    def number(self, buffer: BoundBuffer) -> str:
        """The expression that binds a number."""

    @property
    def bound(self) -> list[str]:
        """The expressions that are bound, in the order of the buffers."""
        return [self._bound(buffer) for buffer in self.launch.buffers]

    def _bound(self, buffer: BoundBuffer) -> str:
        argument = self.launch.argument(buffer)
        if not buffer.host:
            return self.bound_tensor(buffer)
        if buffer == ROW_LENGTH:
            return buffer.name
        if buffer.is_word:
            return f"{buffer.name}_number"
        if buffer.aspect == "given":
            return self.is_given(argument)
        if buffer.aspect == "sizes":
            is_optional = next(tensor.optional for tensor in self.launch.tensors if tensor.name == buffer.of)
            return self.bound_sizes(f"{buffer.of}_dense" if is_optional else buffer.of)
        return self.bound_list(argument, buffer.optional) if buffer.many else self.number(buffer)

    @property
    def finished(self) -> list[str]:
        """The statements after the launch, which copy results into outputs that the kernel could not write directly."""
        lines = []
        results = {result.name for result in self.launch.results}
        for buffer in self.launch.outputs:
            name = buffer.name
            if name in self.launch.in_rows:
                lines.append(self.copied(name, self.from_rows(name)))
            elif name not in results:
                lines.append(self.copied(name, f"{name}_dense"))
        return lines

    @property
    def chosen_by(self) -> str:
        """The tensor whose dtype chooses the instantiation."""
        source = self.launch.source
        if source is None or (source.metal != "T" and self.launch.first_tensor):
            return self.first_tensor
        return f"{source.name}_dense"

    @property
    def bound_row_length(self) -> str:
        """The length of a row: along `dim`, or of the whole tensor or its last dimension if there is no `dim`."""
        launch = self.launch
        if not launch.inputs:
            return "1"
        name = launch.inputs[0].name
        if launch.row_dim:
            return self.row_length
        return f"{name}.numel()" if launch.is_one_row else self.last_size(name)

    def shape_by_rule(self, rule: str) -> str:
        """The shape that a rule of the observed calls gives; empty if there is none."""
        source = self.launch.source
        if not source or not rule:
            return ""
        if rule == "reduced":
            has_keepdim = any(argument.name == "keepdim" for argument in self.launch.overload.arguments)
            return self.reduced_shape(source.name, "keepdim" if has_keepdim else "false")
        if rule == "broadcast":
            return self.broadcast([self.sizes(buffer.name) for buffer in self.launch.broadcast_inputs])
        return self.no_dimensions if rule == "one" else self.sizes(rule.removeprefix("like "))
