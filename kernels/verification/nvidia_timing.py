"""Times our kernels on an NVIDIA GPU beside torch's own CUDA operators and a copy of as many bytes, in one run.

A family's workload is called once with CUDA tensors. The operators of which the family has kernels are caught in the
dispatcher; each is timed as torch's operator and as our function, called with the same arguments and the same outputs.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...audit.model.nested import leaves, map_leaves
from ...errors import one_line
from ...simulator.nvidia import synchronize
from ..runtime import catalog
from .timing import workload_of
from .workload import Workload

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SIZES = tuple(2**power for power in (10, 16, 20, 24, 26, 28))
LAYOUTS = ("contiguous", "strided")
COMPILED_SIZES = (2**26,)
"""In which torch.compile is timed, of float32: it compiles for each."""

_WARM_UPS = 3
_ROUNDS = 5
_ROUND_MILLISECONDS = 4.0
_MOST_CALLS = 100
# Where our kernel, or torch's operator, takes longer, larger sizes are left out.
_SLOWEST_MICROSECONDS, _SLOWEST_OTHER_MICROSECONDS = 50_000.0, 500_000.0
# A call that takes longer is not repeated.
_ONCE_MILLISECONDS = 100.0
# One that takes longer needs no graph: the GPU works while Python prepares the next.
_CAPTURED_MILLISECONDS = 2.0
_CPU_ELEMENTS = 2**20


@dataclass(frozen=True)
class NvidiaTiming:
    """One operator in one dtype, size and layout; times are medians in microseconds.

    Attributes:
        family: the kernel's folder.
        overload: what was timed, `aten::softshrink.out`.
        dtype: of the floating inputs.
        layout: "contiguous", or "strided": every second element of the innermost dimension.
        elements: of the largest tensor, about.
        bytes: of all tensors that the call takes and gives; one that it changes counts twice, read and written.
        operations: floating-point or integer operations where the workload counts them, else 0.
        kernel: our kernel.
        cuda: torch's own operator; None where it has none for these arguments.
        copy: a copy that reads and writes as many bytes in all.
        compiled: what torch.compile makes of the operator, where it takes it apart, in COMPILED_SIZES.
        cpu: the workload on the CPU, in sizes that it computes soon.
        replayed: whether no Python is in the times: the GPU replayed the calls from a graph, or they are long.
        problem: why there is no time, or "".
    """

    family: str
    overload: str
    dtype: str
    layout: str
    elements: int
    bytes: int
    operations: float = 0.0
    kernel: float | None = None
    cuda: float | None = None
    copy: float | None = None
    compiled: float | None = None
    cpu: float | None = None
    replayed: bool = False
    problem: str = ""

    @property
    def bandwidth(self) -> float | None:
        """GB/s that our kernel moves."""
        return self.bytes / self.kernel / 1e3 if self.kernel else None

    @property
    def gigaflops(self) -> float | None:
        """GFLOP/s of our kernel, where the workload counts operations."""
        return self.operations / self.kernel / 1e3 if self.operations and self.kernel else None

    @property
    def of_copy(self) -> float | None:
        """The fraction of the copy's bandwidth that our kernel reaches."""
        return self.copy / self.kernel if self.copy and self.kernel else None


@dataclass(frozen=True)
class _Call:
    """An operator as it was called, and our function for it."""

    overload: str
    operator: Any
    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


def measure_on_nvidia(family: str, sizes: Sequence[int] = SIZES) -> Iterator[NvidiaTiming]:
    """Time the workload of a family on the GPU, in every size, dtype and layout; larger sizes only while it is quick.

    Raises MpsmithError for a family without a workload.
    """
    work = workload_of(family)
    for elements in sizes:
        torch.manual_seed(0)
        with torch.device("cuda"):
            arguments = map_leaves(_on_gpu, work.arguments(elements))
        slow = False
        for dtype in DTYPES:
            for layout in LAYOUTS:
                timing = _measured(family, work, arguments, elements, dtype, layout)
                slow |= (timing.kernel or 0.0) > _SLOWEST_MICROSECONDS
                slow |= (timing.cuda or 0.0) > _SLOWEST_OTHER_MICROSECONDS
                yield timing
        if slow:
            return


def _on_gpu(leaf: Any) -> Any:
    return leaf.to("cuda") if isinstance(leaf, torch.Tensor) else leaf


def _measured(
    family: str, work: Workload, given: Sequence[Any], elements: int, dtype: torch.dtype, layout: str
) -> NvidiaTiming:
    name = str(dtype).removeprefix("torch.")

    def without(problem: str) -> NvidiaTiming:
        torch.cuda.empty_cache()
        return NvidiaTiming(family, work.operator, name, layout, elements, 0, problem=problem)

    try:
        arguments = map_leaves(_as(dtype, layout == "strided"), given)
        call = _caught(family, work, arguments)
        if call is None:
            return without("torch answers this call on CUDA by another operator")
        size = _bytes(call)
        kernel, replayed = _microseconds(lambda: call.function(*call.args, **call.kwargs))
        synchronize()
        plain = dtype is torch.float32 and layout == "contiguous"
        return NvidiaTiming(
            family,
            call.overload,
            name,
            layout,
            elements,
            size,
            operations=work.operations(elements) if work.operations else 0.0,
            kernel=kernel,
            cuda=_unless_refused(lambda: call.operator(*call.args, **call.kwargs)),
            copy=_copy_microseconds(size),
            compiled=_compiled_microseconds(work, call, arguments) if plain and elements in COMPILED_SIZES else None,
            cpu=_cpu_microseconds(work, elements) if plain and elements <= _CPU_ELEMENTS else None,
            replayed=replayed,
        )
    except torch.OutOfMemoryError:
        return without("the GPU has too little memory")
    except (NotImplementedError, RuntimeError, ValueError) as error:
        return without(one_line(error, 160))


def _unless_refused(call: Callable[[], Any]) -> float | None:
    try:
        return _microseconds(call)[0]
    except (NotImplementedError, RuntimeError):
        return None


def _compiled_microseconds(work: Workload, call: _Call, arguments: Any) -> float | None:
    """The workload as torch.compile makes it; None where that would only call the operator."""
    if not _is_taken_apart(call.operator):
        return None
    torch.compiler.reset()
    compiled = torch.compile(work.call, dynamic=False)
    try:
        compiled(*arguments)  # it compiles now, and is not timed
    except RuntimeError:
        return None
    return _unless_refused(lambda: compiled(*arguments))


def _is_taken_apart(operator: Any) -> bool:
    """Whether Inductor has its own code for an overload, by a decomposition or a lowering."""
    from torch._inductor.decomposition import decompositions
    from torch._inductor.lowering import fallbacks, lowerings

    packet = operator._overloadpacket
    forms = [getattr(packet, name) for name in packet.overloads()]
    forms = [form for form in forms if not any(argument.is_out for argument in form._schema.arguments)]
    return any(form in decompositions or (form in lowerings and form not in fallbacks) for form in forms)


def _cpu_microseconds(work: Workload, elements: int) -> float:
    """The fastest of a few calls with tensors on the CPU."""
    torch.manual_seed(0)
    arguments = work.arguments(elements)
    best = float("inf")
    for _ in range(_WARM_UPS):
        begin = time.perf_counter()
        work.call(*arguments)
        best = min(best, (time.perf_counter() - begin) * 1e6)
        if best > _ONCE_MILLISECONDS * 1e3:
            break
    return best


def _as(dtype: torch.dtype, strided: bool) -> Callable[[Any], Any]:
    """Gives a leaf of the arguments the dtype, where it holds floats, and where asked for gaps between its elements."""

    def converted(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        there = leaf.to(dtype) if leaf.dtype is torch.float32 and leaf.dim() else leaf
        if not strided or there.dim() == 0:
            return there
        wide = torch.empty((*there.shape[:-1], 2 * there.shape[-1]), dtype=there.dtype, device="cuda")
        return wide[..., ::2].copy_(there)

    return converted


class _Catch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first call of an operator of the family, or of one whose out= form is."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._functions = functions
        self.call: _Call | None = None

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = operator(*args, **kwargs)
        if self.call is None:
            self.call = self._ours(operator, args, kwargs, result)
        return result

    def _ours(self, operator: Any, args: Any, kwargs: Any, result: Any) -> _Call | None:
        # The form with outputs is preferred: it times the kernel without the allocator.
        outputs = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
        for overload in operator._overloadpacket.overloads():
            form = getattr(operator._overloadpacket, overload)
            name = form._schema.name + (f".{overload}" if overload != "default" else "")
            written = [argument.name for argument in form._schema.arguments if argument.is_out]
            plain = len(form._schema.arguments) - len(written)
            is_out_form = written and len(written) == len(outputs) and plain == len(operator._schema.arguments)
            if name in self._functions and is_out_form and not operator._schema.is_mutable:
                given = {**kwargs, **dict(zip(written, outputs, strict=True))}
                return _Call(name, form, self._functions[name], args, given)
        name = str(operator._schema.name) + (
            f".{operator._overloadname}" if operator._overloadname != "default" else ""
        )
        if name in self._functions:
            return _Call(name, operator, self._functions[name], args, kwargs)
        return None


def _caught(family: str, work: Workload, arguments: Any) -> _Call | None:
    functions = {kernel.overload: kernel.function for kernel in catalog.family(family)}
    with torch.no_grad(), _Catch(functions) as catch:
        work.call(*arguments)
    return catch.call  # type: ignore[no-any-return]


def _bytes(call: _Call) -> int:
    """Of the tensors that go in and come out, allocated results as well; what a call changes counts twice."""
    result = call.function(*call.args, **call.kwargs)
    changed = [
        value
        for argument, value in zip(call.operator._schema.arguments, call.args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return _bytes_of((call.args, dict(call.kwargs), result)) + _bytes_of(changed)


def _bytes_of(tree: Any) -> int:
    tensors = {
        (leaf.data_ptr(), leaf.shape): leaf.numel() * leaf.element_size()
        for leaf in leaves(tree)
        if isinstance(leaf, torch.Tensor) and leaf.is_cuda
    }
    return sum(tensors.values())


@functools.lru_cache(maxsize=64)
def _copy_microseconds(size: int) -> float:
    """A copy of contiguous memory that moves so many bytes in all: half of them read, half written."""
    source = torch.empty(max(size // 8, 1), dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    return _microseconds(lambda: target.copy_(source))[0]


def _microseconds(call: Callable[[], Any]) -> tuple[float, bool]:
    """The median over rounds of calls, and whether they were replayed from a graph or long enough to hide Python."""
    for _ in range(_WARM_UPS):
        once = _elapsed(call, 1)
        if once > _ONCE_MILLISECONDS:
            return once * 1e3, True
    calls = max(1, min(_MOST_CALLS, int(_ROUND_MILLISECONDS / max(once, 1e-3))))
    graph = _graph(call, calls) if once < _CAPTURED_MILLISECONDS else None
    run, each = (graph.replay, 1) if graph is not None else (call, calls)
    run()
    rounds = [_elapsed(run, each) / calls * 1e3 for _ in range(_ROUNDS)]
    return statistics.median(rounds), graph is not None or once >= _CAPTURED_MILLISECONDS


def _elapsed(call: Callable[[], Any], calls: int) -> float:
    """Milliseconds on the GPU's own clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def _graph(call: Callable[[], Any], calls: int) -> Any:
    """A graph of so many calls, or None for a call that waits for the GPU, which no graph can hold."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
    except RuntimeError:
        torch.cuda.synchronize()
        _end_capture()
        return None
    return graph


def _end_capture() -> None:
    """After a capture that failed torch draws no random numbers on the GPU until another one has succeeded."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.empty(1, device="cuda").zero_()
