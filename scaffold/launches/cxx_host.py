"""What the host sides of a launch in C++ have in common, whichever interface of PyTorch they use."""

from __future__ import annotations

from dataclasses import dataclass

from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Type

from ..operators.observation import FOLLOWS
from .launch import ROW_LENGTH, BoundBuffer, Launch, Result


@dataclass(frozen=True)
class CxxHost:
    """A launch as C++ writes it. `NAME_dense` is a tensor whose elements stand behind each other.

    `support`: where the functions for rows and lists stand, `mps_support::`. `shaped`: whether given outputs have their
    shape already, as those of a structured kernel have.
    """

    launch: Launch
    support: str = ""
    shaped: bool = False

    # ---- what the interfaces write differently
    tensor = "Tensor"

    def empty(self, shape: str, like: str, element: str) -> str:
        """A new tensor on the device of `like`, of its dtype or of the one that is named."""
        raise NotImplementedError

    def contiguous(self, tensor: str) -> str:
        """A tensor with its elements behind each other."""
        raise NotImplementedError

    def expanded(self, tensor: str, shape: str) -> str:
        """A contiguous tensor of that shape."""
        raise NotImplementedError

    def resize(self, tensor: str, shape: str) -> str:
        """The statement that gives an output its shape."""
        raise NotImplementedError

    def copied(self, target: str, source: str) -> str:
        """The statement that copies values."""
        raise NotImplementedError

    def broadcast(self, shapes: list[str]) -> str:
        """The shape that tensors broadcast to."""
        raise NotImplementedError

    # ---- the launch
    @property
    def prepared(self) -> list[str]:
        """The lines before the launch: outputs get their shapes, inputs their layout."""
        launch = self.launch
        lines = [f"{self.tensor} {result.name} = {self.allocated(result)};" for result in launch.results]
        if launch.form == "out" and not self.shaped and not launch.is_elementwise_out:
            shapes = [(b.name, self.shape(launch.shape_of(b))) for b in launch.outputs]
            lines += [self.resize(name, shape) for name, shape in shapes if shape]
        lines += [f"const {self.tensor} {b.name}_dense = {self._dense(b)};" for b in launch.inputs]
        lines += [f"const {self.tensor} {b.name}_dense = {self._written(b)};" for b in launch.outputs]
        if launch.by_rows:
            lines.append(f"const int64_t row_length = {self._row_length};")
        return lines

    @property
    def finished(self) -> list[str]:
        """The lines after the launch: what was written goes where it belongs."""
        lines = []
        results = {result.name for result in self.launch.results}
        for buffer in self.launch.outputs:
            name = buffer.name
            if name in self.launch.in_rows:
                rows = f"{self.support}from_rows({name}_dense, {name}.sizes(), {self._dims})"
                lines.append(self.copied(name, rows))
            elif name not in results:
                lines.append(self.copied(name, f"{name}_dense"))
        return lines

    @property
    def threads(self) -> str:
        """The expression for the number of threads."""
        launch = self.launch
        if launch.row_dim:
            return f"{launch.inputs[0].name}_dense.size(0)"
        name = (launch.outputs or launch.tensors)[0].name
        return f"row_length ? {name}.numel() / row_length : 0" if launch.a_thread_a_row else f"{name}_dense.numel()"

    @property
    def chosen_by(self) -> str:
        """The tensor whose dtype chooses the instantiation."""
        source = self.launch.source
        if source is None or (source.metal != "T" and self.launch.first_tensor):
            return f"{self.launch.first_tensor}_dense"
        return f"{source.name}_dense"

    @property
    def bound(self) -> list[str]:
        """The expressions that are bound, in the order of the buffers."""
        return [self._bound(buffer) for buffer in self.launch.buffers]

    def number(self, buffer: BoundBuffer) -> str:
        """A number as the shader takes it."""
        name = self.launch.argument(buffer)
        value = f"{name}.value_or(0)" if buffer.optional else name
        return f"static_cast<{buffer.host}>({value})"

    def shape(self, rule: str) -> str:
        """The shape that a rule gives; empty where there is none."""
        if not self.launch.source:
            return ""
        if rule == "reduced":
            has_keepdim = any(argument.name == "keepdim" for argument in self.launch.overload.arguments)
            words = [self.launch.source.name, self._dims, "keepdim" if has_keepdim else "false"]
            return f"{self.support}reduced_shape({', '.join(words)})"
        if rule == "broadcast":
            return self.broadcast([f"{buffer.name}.sizes()" for buffer in self.launch.spread])
        if rule == "one":
            return "{}"
        return f"{rule.removeprefix('like ')}.sizes()" if rule else ""

    def allocated(self, result: Result) -> str:
        """How a result is allocated; like the first input where no rule is known, for the author to change."""
        source = self.launch.source
        if source is None:
            return self.empty("{0}", "", result.element)
        return self.empty(self.shape(result.shape) or f"{source.name}.sizes()", source.name, result.element)

    def _dense(self, buffer: BoundBuffer) -> str:
        launch, name = self.launch, buffer.name
        if buffer.optional:
            argument = launch.argument(buffer)
            stand_in = f"{launch.source.name}_dense" if launch.source else f"{self.tensor}()"
            return f"{argument}.has_value() ? {self.contiguous(f'(*{argument})')} : {stand_in}"
        if name in launch.in_rows:
            return f"{self.support}rows_of({name}, {self._dims})"
        if launch.outputs and (launch.is_elementwise_out or (len(launch.spread) > 1 and buffer in launch.spread)):
            return self.expanded(name, f"{launch.outputs[0].name}.sizes()")
        return self.contiguous(name)

    def _written(self, buffer: BoundBuffer) -> str:
        """A tensor that the kernel can write, and that holds the values where they count too."""
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

    @property
    def _row_length(self) -> str:
        launch = self.launch
        if not launch.inputs:
            return "1"
        name = launch.inputs[0].name
        if launch.row_dim:
            return f"{name}_dense.size(1)"
        return f"{name}.numel()" if launch.is_one_row else f"{name}.dim() ? {name}.size(-1) : 1"

    def _bound(self, buffer: BoundBuffer) -> str:
        argument = self.launch.argument(buffer)
        if not buffer.host:
            return f"{buffer.name}_dense"
        if buffer == ROW_LENGTH:
            return buffer.name
        if buffer.says == "given":
            return f"static_cast<int64_t>({argument}.has_value())"
        if buffer.says == "sizes":
            tensor = next(one for one in self.launch.tensors if one.name == buffer.of)
            dense = tensor.optional
            return f"{self.support}list_of({buffer.of}{'_dense' if dense else ''}.sizes())"
        if buffer.many:
            return f"{self.support}list_of({argument})"
        return self.number(buffer)


def holds_scalar(kind: Type | None) -> bool:
    """Whether a type is a Scalar, optional or not."""
    inner = kind.elem if isinstance(kind, OptionalType | ListType) else kind
    return isinstance(inner, BaseType) and inner.name is BaseTy.Scalar
