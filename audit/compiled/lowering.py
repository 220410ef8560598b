"""Records what torch.compile does: the Metal that it generates, the remaining calls of aten, and graph breaks.

It reads the nodes of Inductor's scheduler when the code of a graph is complete, not the generated text. They show for
each operation whether it became a kernel.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

# Inductor's extern nodes that compute nothing: they pass on a result or a number, or check one.
_BOOKKEEPING = frozenset(
    {"AssertScalar", "DynamicScalar", "DynamicSelectStorageOffset", "MemoryCheckKernel", "MultiOutput"}
)
HOST_KERNEL = "C++ of Inductor's for the CPU"
# The code of reductions, atomics and additions to memory: only there do threads communicate.
_SHARED_MEMORY = re.compile(r"threadgroup|simd_|atomic|\] \+= ")
# How a generator writes a kernel into the code of a graph; the second form up to torch 2.11.
_METAL = re.compile(
    r"(?:async_compile\.metal\('\w+', |compile_mps_shader\()(?P<quotes>'''|\"{3})(?P<source>.*?)(?P=quotes)", re.DOTALL
)


@dataclass
class Lowering:
    """The lowering by torch.compile of the calls inside `recorded_compilation`.

    Attributes:
        sources: the Metal sources that Inductor gave to the compiler, in that order.
        kernels: how many operations became Metal kernels, after fusion.
        aten: the operators that remain calls of aten, each once.
        graphs: how many graphs were compiled.
        breaks: why Dynamo broke the graph, each reason once.
        recompilations: how often the same code was compiled again.
    """

    sources: list[str] = field(default_factory=list)
    kernels: int = 0
    aten: set[str] = field(default_factory=set)
    graphs: int = 0
    breaks: tuple[str, ...] = ()
    recompilations: int = 0

    @property
    def source(self) -> str:
        """All generated Metal source."""
        return "\n".join(self.sources)

    @property
    def threads_share_memory(self) -> bool:
        """Whether threads of a generated kernel read what other threads write, so that their order may matter."""
        return _SHARED_MEMORY.search(self.source) is not None


@contextmanager
def recorded_compilation(on_graph: Callable[[Lowering], None] = lambda lowering: None) -> Iterator[Lowering]:
    """A context that records compilations, with Dynamo and Inductor reset as in a new process.

    Args:
        on_graph: called when the code of a graph is complete, before its Metal is compiled. It may raise to stop.
    """
    from torch._dynamo.utils import counters
    from torch._inductor.graph import GraphLowering

    lowering = Lowering()

    def graph_is_complete(code: str) -> None:
        _record_graph(lowering)
        lowering.sources.extend(_metal_in(code))
        on_graph(lowering)

    _as_in_a_new_process()
    before = GraphLowering.save_output_code
    GraphLowering.save_output_code = staticmethod(graph_is_complete)
    try:
        with _quiet():
            yield lowering
    finally:
        GraphLowering.save_output_code = before
        lowering.breaks = tuple(dict.fromkeys(map(_first_line, counters["graph_break"])))
        torch._dynamo.reset()


def _as_in_a_new_process() -> None:
    from torch._dynamo.utils import counters
    from torch._inductor.codegen.mps import MetalKernel

    torch._dynamo.reset()
    counters.clear()
    # The headers are an attribute of the class: later kernels of the process include those of earlier ones.
    if hasattr(MetalKernel, "headers"):
        MetalKernel.headers = type(MetalKernel.headers)(["utils"])


def _record_graph(lowering: Lowering) -> None:
    from torch._guards import CompileContext
    from torch._inductor.virtualized import V

    lowering.graphs += 1
    compile_id = CompileContext.current_compile_id()
    if compile_id is not None and (compile_id.frame_compile_id or 0) > 0:
        lowering.recompilations += 1
    for node in V.graph.scheduler.nodes:
        name = name_of_call(node)
        if name:
            lowering.aten.add(name)
        elif name is None:
            lowering.kernels += 1


def name_of_call(node: Any) -> str | None:
    """The operator that a node of Inductor's scheduler calls, "" if it computes nothing, None for a Metal kernel."""
    from torch._inductor.scheduler import ExternKernelSchedulerNode, NopKernelSchedulerNode

    if isinstance(node, NopKernelSchedulerNode):
        return ""
    if not isinstance(node, ExternKernelSchedulerNode):
        device = node.get_device()
        return None if device is None or device.type == "mps" else HOST_KERNEL
    extern = node.node
    kind = type(extern).__name__
    if kind in _BOOKKEEPING:
        return ""
    overload = getattr(extern, "op_overload", None)
    if overload is None:
        written = str(getattr(extern, "python_kernel_name", None) or kind)
        return re.sub(r"^(?:extern_kernels|aten|torch\.ops\.aten)\.(\w+).*", r"aten::\1", written)
    # Inductor calls the out= overload; the operator is what remains.
    return str(getattr(overload, "_schema", overload).name)


def _metal_in(code: str) -> list[str]:
    """The Metal sources in the code that Inductor wrote for a graph."""
    return [match["source"] for match in _METAL.finditer(code)]


def _first_line(reason: Any) -> str:
    """Dynamo's reason in one line: the heading and its explanation, without the hints."""
    text = str(reason)
    heading, _, rest = text.partition("\n")
    explanation = re.search(r"Explanation: (.*)", rest)
    return f"{heading}: {explanation.group(1)}" if explanation else heading


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logs of Dynamo and Inductor on failure; the exception has the same information."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
