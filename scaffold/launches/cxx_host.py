"""What the host sides of a launch in C++ have in common, whichever interface of PyTorch they use."""

from __future__ import annotations

from dataclasses import dataclass

from .launch import ROW_LENGTH, BoundBuffer, Launch


@dataclass(frozen=True)
class CxxHost:
    """A launch as C++ writes it. `NAME_dense` is a tensor whose elements stand behind each other."""

    launch: Launch

    @property
    def row_length(self) -> str:
        """The expression for the length of a row; empty for kinds that do not work by rows."""
        if not self.launch.by_rows:
            return ""
        if not self.launch.inputs:
            return "1"
        name = self.launch.inputs[0].name
        return f"{name}.dim() ? {name}.size(-1) : 1"

    @property
    def threads(self) -> str:
        """The expression for the number of threads."""
        outputs = self.launch.outputs
        name = outputs[0].name if outputs else self.launch.first_tensor
        return f"{name}_dense.numel()"

    @property
    def bound(self) -> list[str]:
        """The expressions that are bound, in the order of the buffers."""
        return [self._bound(buffer) for buffer in self.launch.buffers]

    def number(self, buffer: BoundBuffer) -> str:
        """A number as the shader takes it."""
        return f"static_cast<{buffer.host}>({self.launch.argument(buffer)})"

    def _bound(self, buffer: BoundBuffer) -> str:
        if not buffer.host:
            return f"{buffer.name}_dense"
        return buffer.name if buffer == ROW_LENGTH else self.number(buffer)
