"""Compiled kernels as host code launches them: by name, with memory at each index, and its own grid and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..errors import KernelFault
from ..metal.binding import ArgCasts, Buffer, bind
from ..metal.library import grid_and_group
from ..metal.modes import affordable_mode, checking, current_mode
from .library import AirKernel, AirLibrary, Size


@dataclass(frozen=True)
class BoundKernel:
    """A kernel of a release. The properties have the names of `simulator.metal.library.SimulatedKernel`."""

    kernel: AirKernel

    @property
    def max_threads_per_threadgroup(self) -> int:
        """The largest threadgroup."""
        return self.kernel.max_threads

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory besides what a launch passes; what the kernel declares itself is not read."""
        return 0

    @cached_property
    def buffer_parameters(self) -> dict[int, tuple[str, int]]:
        """The name of each buffer argument and the bytes that a reference reads (0 for a pointer), by index."""
        arguments = self.kernel.signature.buffers
        return {a.index: (a.name, a.size if a.by_reference and a.used else 0) for a in arguments}

    def __call__(
        self,
        *args: object,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: ArgCasts = None,
    ) -> None:
        """Run the kernel on tensors and numbers, as `torch.mps.compile_shader` passes them.

        Raises:
            MetalRuntimeError: an argument does not fit; and what `launch` raises.
        """
        buffers = {i: bind(argument, i, arg_casts, "mps", tight=False) for i, argument in enumerate(args)}
        grid, group = grid_and_group(args, threads, group_size, "mps", self.max_threads_per_threadgroup)
        self.launch(grid, group, buffers, {})

    def launch(self, grid: Size, group: Size, buffers: Mapping[int, Buffer], memory: Mapping[int, Buffer]) -> None:
        """Run the kernel on bound memory: buffers and `[[threadgroup(n)]]` memory by index.

        Inside `checking`, only a launch that `affordable_mode` admits runs in that mode.

        Raises:
            KernelFault: a buffer that it reads is too small or missing, or the kernel did something invalid.
            AirError: it cannot be compiled.
        """
        for index, (name, size) in self.buffer_parameters.items():
            if size and (index not in buffers or buffers[index].available < size):
                given = f"{buffers[index].available} bytes are" if index in buffers else "nothing is"
                raise KernelFault(
                    f"{str(self.kernel)[1:-1]}: it reads {size} bytes of argument {name}, and {given} bound there"
                )
        if current_mode("fast") == "fast":
            self.kernel.run_bound(grid, group, buffers, memory)
            return
        with checking(affordable_mode(self.kernel.communicates, prod(grid))):
            self.kernel.run_bound(grid, group, buffers, memory)


@dataclass(frozen=True)
class BoundLibrary:
    """The kernels of a release by attribute, as `simulator.metal.library.ShaderLibrary` has them."""

    library: AirLibrary

    def __dir__(self) -> list[str]:
        return list(self.library.names)

    def __getattr__(self, name: str) -> BoundKernel:
        try:
            return BoundKernel(self.library.kernel(name))
        except KeyError:
            raise AttributeError(f"the Metal library has no kernel {name}") from None
