"""Compares the launch conventions' plans for calls with what a release's own host code requests from Metal.

The calls are the recorded ones of every overload with a convention, and some of element-wise operators in more layouts.

The host code is that of the release's macOS wheel, run on Linux; Metal is a recorder, so no kernel computes. Kernel,
grid, threadgroup, the first 256 bytes of what a kernel reads, and the sizes of blit copies and fills are compared.

`python -m mpsmith.audit.shipped.launch_comparison 2.13.0 26.0` prints the table.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from ...errors import MpsmithError
from ...simulator.errors import KernelArgumentError
from ...simulator.macho.process import HostProcess, OperatorError
from ..releases.wheel.libraries import host_files
from ..releases.wheel.shipped import full_release, shipped_library

if TYPE_CHECKING:
    from ...simulator.air.library import AirLibrary
    from ...simulator.macho.traces import Launched, MetalTrace
    from ...simulator.shipped.plan import KernelLaunch, Step

_AGREES, _NO_PLAN, _NOT_RECORDED = "agrees", "no plan", "not recorded"
UNARY = "abs ceil cos erf exp expm1 floor log log1p neg reciprocal round rsqrt sigmoid sign sin sqrt tan tanh trunc"
# They read back what a kernel counted, and here no kernel computes.
_READ_BACK = ("masked_scatter", "masked_select", "nonzero")
_ERROR_BUFFER_SIZE = 4096
# In the order of c10::ScalarType and c10::MemoryFormat.
_DTYPE_NUMBERS: tuple[torch.dtype | None, ...] = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(None, torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16),
)
_MEMORY_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)
BINARY = "atan2 div.Tensor eq.Tensor fmod.Tensor hypot lt.Tensor maximum minimum mul.Tensor ne.Tensor pow.Tensor_Tensor"


# Overload, layout and dtype, arguments.
TracedCall: TypeAlias = tuple[str, str, tuple[Any, ...]]


@dataclass(frozen=True)
class Compared:
    """A call: overload, layout and dtype of its operands, and the outcome: `agrees`, or what differs or is missing."""

    overload: str
    layout: str
    outcome: str


def elementwise_calls() -> Iterator[TracedCall]:
    """Overload, layout and arguments: fills, copies, unary and binary element-wise operators."""
    layouts: dict[str, Callable[[torch.dtype], torch.Tensor]] = {
        "dense": lambda dtype: torch.arange(1, 25).reshape(4, 6).to(dtype),
        "transposed": lambda dtype: torch.arange(1, 25).reshape(6, 4).to(dtype).t(),
        "sliced": lambda dtype: torch.arange(1, 97).reshape(8, 12).to(dtype)[::2, ::2],
        "broadcast": lambda dtype: torch.arange(1, 7).to(dtype),
    }
    for dtype in (torch.float32, torch.float16, torch.int64):
        name = str(dtype).removeprefix("torch.")
        first = layouts["dense"](dtype)
        for layout, made in layouts.items():
            other, where = made(dtype), f"{layout} {name}"
            if layout != "broadcast":
                yield from ((overload, where, (other,)) for overload in UNARY.split())
                yield "fill_.Scalar", where, (other, 3)
                yield "zero_", where, (other,)
            yield from ((overload, where, (first, other)) for overload in BINARY.split())
            yield "add.Tensor", where, (first, other, 1)
            yield "add.Tensor", f"{where}, alpha", (first, other, 2)
            yield "sub.Tensor", where, (first, other, 1)
            yield "copy_", where, (torch.zeros_like(first), other, False)
            yield "copy_", f"{where} to float32", (torch.zeros(4, 6), other, False)
            yield "copy_", f"{where} to transposed", (layouts["transposed"](dtype), other, False)
            yield "copy_", f"{where} to sliced", (layouts["sliced"](dtype), other, False)
        yield "mul.Tensor", f"float32 and {name}", (torch.ones(4, 6), first)
    for start in (0, 1, 3):
        target = torch.ones(80, dtype=torch.uint8)[start:79]
        yield "fill_.Scalar", f"from {start} uint8", (target, 3)
        yield "zero_", f"from {start} uint8", (target,)


def recorded_calls() -> Iterator[TracedCall]:
    """The recorded calls of every overload with a convention: three of each dtype, without empty tensors."""
    from ...simulator.shipped.conventions import PLANNERS
    from ..cases.calls.invocation import overload_of
    from ..cases.sources.schema import SchemaSource
    from ..model.nested import leaves
    from ..model.selection import Samples

    source = SchemaSource()
    for key in source.groups():
        if key.operator not in PLANNERS or key.operator.startswith(_READ_BACK):
            continue
        schema = overload_of(f"aten::{key.operator}")._schema
        if any(argument.name == "generator" for argument in schema.arguments):
            continue
        for number, case in enumerate(islice(source.cases(key, Samples.DEFAULT), 3)):
            given = dict(zip((a.name for a in schema.arguments), case.args, strict=False)) | case.kwargs
            arguments = tuple(_listed(a, given.get(a.name, a.default_value)) for a in schema.arguments)
            if all(leaf.numel() for leaf in leaves(arguments) if isinstance(leaf, torch.Tensor)):
                yield key.operator, f"{key.dtype}, recorded {number}", arguments


def _listed(argument: Any, value: Any) -> Any:
    """The value, as a list where the schema takes several integers and one was given for all."""
    size = argument.N
    return [value] * size if isinstance(value, int) and size and not isinstance(value, bool) else value


def _sent(value: Any) -> Any:
    """The value as the boxed interface takes it: dtypes, layouts and memory formats as their numbers."""
    if isinstance(value, torch.dtype):
        return _DTYPE_NUMBERS.index(value)
    if isinstance(value, torch.layout):
        return 0
    if isinstance(value, torch.memory_format):
        return _MEMORY_FORMATS.index(value)
    return "mps" if isinstance(value, torch.device) else value


def compare(process: HostProcess, library: AirLibrary, calls: Iterable[TracedCall]) -> list[Compared]:
    """Compare every call that the CPU computes. Raises MachOError if the process ends."""
    compared = []
    for overload, layout, arguments in calls:
        try:
            plan = _planned(overload, arguments, library)
        except RuntimeError:  # the CPU refuses the dtype
            continue
        try:
            trace = process.trace(f"aten::{overload}", *map(_sent, arguments))
        except OperatorError as error:
            outcome = f"{_NOT_RECORDED}: {str(error).splitlines()[0]}"
        else:
            outcome = plan if isinstance(plan, str) else difference(plan, trace, library) or _AGREES
        compared.append(Compared(overload, layout, outcome))
    return compared


def table(compared: Sequence[Compared]) -> str:
    """A line for each overload with counts, then each call that does not agree."""
    from tabulate import tabulate

    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for call in compared:
        kind = next((kind for kind in (_AGREES, _NO_PLAN, _NOT_RECORDED) if call.outcome.startswith(kind)), "differs")
        counts[call.overload][kind] += 1
    columns = (_AGREES, "differs", _NO_PLAN, _NOT_RECORDED)
    rows: list[tuple[object, ...]] = [
        (name, *(by_outcome[column] for column in columns)) for name, by_outcome in counts.items()
    ]
    rows.append(("all", *(sum(by_outcome[column] for by_outcome in counts.values()) for column in columns)))
    others = [f"{call.overload}, {call.layout}: {call.outcome}" for call in compared if call.outcome != _AGREES]
    return "\n".join([tabulate(rows, headers=("overload", *columns)), "", *others])


def _planned(overload: str, arguments: tuple[Any, ...], library: AirLibrary) -> Sequence[Step] | str:
    from ...simulator.shipped.call import Call
    from ...simulator.shipped.conventions import PLANNERS
    from ...simulator.shipped.plan import Declined

    name, _, variant = overload.partition(".")
    operator = getattr(getattr(torch.ops.aten, name), variant or "default")
    in_place = operator._schema.arguments[0].alias_info is not None
    ordered = {a.name: value for a, value in zip(operator._schema.arguments, arguments, strict=True)}
    positional = [ordered[a.name] for a in operator._schema.arguments if not a.kwarg_only]
    keywords = {a.name: ordered[a.name] for a in operator._schema.arguments if a.kwarg_only}
    result = arguments[0] if in_place else operator(*positional, **keywords)
    if overload not in PLANNERS:
        return f"{_NO_PLAN}: there is no convention"
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if any(tensor is None for tensor in results):
        return f"{_NO_PLAN}: a result that is not asked for"
    call = Call(overload, ordered, results)
    try:
        return PLANNERS[overload](call, library)
    except Declined as declined:
        return f"{_NO_PLAN}: {declined.reason}"


def difference(plan: Sequence[Step], trace: MetalTrace, library: AirLibrary) -> str | None:
    """The first difference between a plan and a trace, or None."""
    from ...simulator.shipped.plan import BlitCopy, BlitFill, KernelLaunch

    planned = [step for step in plan if isinstance(step, KernelLaunch)]
    names = [step.kernel for step in planned], [launch.kernel for launch in trace.launches]
    if names[0] != names[1]:
        return f"plans {', '.join(names[0]) or 'no kernel'}; the release launches {', '.join(names[1]) or 'none'}"
    for what, sizes, recorded in (
        ("copies", [step.target.nbytes for step in plan if isinstance(step, BlitCopy)], trace.copied),
        ("fills", [step.target.nbytes for step in plan if isinstance(step, BlitFill)], trace.filled),
    ):
        if sizes != recorded:
            return f"plans {what} of {sizes} bytes; the release makes {recorded}"
    written: set[int] = set()
    pairs = zip(planned, trace.launches, strict=True)
    return next((text for step, launch in pairs if (text := _launch_difference(step, launch, library, written))), None)


def _launch_difference(step: KernelLaunch, launch: Launched, library: AirLibrary, written: set[int]) -> str | None:
    """The first difference of a launch, or None. Memory that the plan writes is undefined; `written` collects it."""
    from ...simulator.air.binding import bind

    sizes = (step.threads, step.group), (launch.grid, launch.group)
    if sizes[0] != sizes[1]:
        return f"plans grid and group {sizes[0]}; the release has {sizes[1]}"
    signature = library.signature(step.kernel)
    try:
        buffers = bind(signature, _with_error_buffers(step.arguments)).buffers
    except KernelArgumentError as error:
        return f"the plan does not bind: {error}"
    for argument in signature.buffers:
        if not argument.used or argument.index not in buffers:
            continue
        if argument.index not in launch.bound:
            return f"the release binds nothing for {argument.name}"
        planned = buffers[argument.index]
        if argument.writable:  # what is there before the call is not defined
            written.add(planned.base)
        if planned.base in written:
            continue
        recorded = launch.bound[argument.index].content
        length = min(len(recorded), planned.base + planned.size - planned.address)
        if argument.by_reference and argument.type_name.endswith("3"):  # a vector of three is padded to four
            length = argument.size * 3 // 4
        content = ctypes.string_at(planned.address, length)
        if not _same(content, recorded[:length], may_have_gaps=bool(argument.fields)):
            return f"plans {content[:32].hex()} for {argument.name}; the release has {recorded[:length][:32].hex()}"
    return None


def _with_error_buffers(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments, with memory for reports of kernels: the plan only says that there is some."""
    from ...simulator.shipped.plan import ERROR_BUFFER

    memory = torch.zeros(_ERROR_BUFFER_SIZE, dtype=torch.uint8)
    return {name: memory if value is ERROR_BUFFER else value for name, value in arguments.items()}


def _same(planned: bytes, recorded: bytes, *, may_have_gaps: bool) -> bool:
    """Whether two arguments are equal. Words of a structure that the plan leaves at zero are undefined in the host."""
    if not may_have_gaps:
        return planned == recorded
    words = [(planned[i : i + 4], recorded[i : i + 4]) for i in range(0, len(planned), 4)]
    return all(word in (other, bytes(len(word))) for word, other in words)


def main(release: str, macos: str) -> None:
    """Print the table of a release as on a version of macOS."""
    from ...simulator.air.library import AirLibrary

    major, _, minor = macos.partition(".")
    library = AirLibrary(shipped_library(release), full_release(release))
    with HostProcess(host_files(release), (int(major), int(minor or 0)), library.names) as process:
        print(table(compare(process, library, chain(elementwise_calls(), recorded_calls()))))


if __name__ == "__main__":
    if not re.fullmatch(r"\S+ \d+(\.\d+)?", " ".join(sys.argv[1:])):
        sys.exit("error: name a release and a version of macOS, such as 2.13.0 26.0")
    try:
        main(*sys.argv[1:])
    except MpsmithError as error:
        sys.exit(f"error: {error}")
