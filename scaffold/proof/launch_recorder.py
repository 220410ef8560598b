"""The process that runs a family's calls and compares each launch with its kernel: `python -m ... FAMILY`.

Prints how many launches there were and the findings, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import MpsmithError
from ...kernels.runtime import catalog
from ...kernels.runtime.registration import enable
from ...simulator.metal import MetalRuntimeError, MetalValueError, SimulatedKernel
from ...simulator.metal.binding import ArgCasts, Buffer, Device, bind
from ...simulator.metal.dispatch import KernelParameter
from ...simulator.metal.element_types import mistaken, of_another_width
from ...simulator.opening import DeviceKind
from .family_launches import NOTHING_TO_RUN_ON

_FAMILIES = Path(catalog.__file__).resolve().parents[1]
_RUNTIME = _FAMILIES / "runtime"


@dataclass(frozen=True)
class LaunchFinding:
    """A problem of a launch, and the Python line that launches."""

    file: str
    line: int
    message: str


@dataclass
class LaunchRecord:
    """The number of launches, and the findings without repetitions."""

    launches: int = 0
    findings: dict[LaunchFinding, None] = field(default_factory=dict)


def main(family: str) -> int:
    """Run the family's calls; the process's exit status."""
    from ...audit.releases.surface.profiles import coverage_profile
    from ...simulator.opening import open_device

    try:
        open_device(DeviceKind.SIMULATED, coverage_profile)
    except MpsmithError as error:
        print(error, file=sys.stderr)
        return NOTHING_TO_RUN_ON
    enable(*(kernel.overload for kernel in catalog.family(family)))
    record = LaunchRecord()
    with recording(record):
        for call in getattr(catalog.part_of(family, "cases"), "CASES", ()):
            for dtype in call.dtypes:
                _run(call, dtype, record)
    print(json.dumps({"launches": record.launches, "findings": [asdict(finding) for finding in record.findings]}))
    return 0


def _run(call: Any, dtype: Any, record: LaunchRecord) -> None:
    """One call, forward and backward. An error is a finding unless a launch of the call was one already."""
    import torch

    for case in call.cases(dtype):
        before = len(record.findings)
        try:
            results = call.call(*map(_on_mps, case.args))
            first = results[0] if isinstance(results, tuple | list) else results
            if case.differentiable and isinstance(first, torch.Tensor) and first.requires_grad:
                first.sum().backward()  # type: ignore[no-untyped-call]
        except (MetalRuntimeError, MetalValueError, SyntaxError) as error:
            if len(record.findings) == before:
                record.findings.setdefault(_placed(str(error), traceback.extract_tb(error.__traceback__)))
        except Exception:  # the operator's own error: only the launches before it count
            continue


def _on_mps(argument: Any) -> Any:
    import torch

    if isinstance(argument, torch.Tensor):
        return argument.detach().to("mps").requires_grad_(argument.requires_grad)
    if isinstance(argument, list | tuple):
        return type(argument)(map(_on_mps, argument))
    return argument


@contextmanager
def recording(record: LaunchRecord) -> Iterator[None]:
    """In the context, each launch is compared with its kernel before it happens."""
    launch = SimulatedKernel.__call__

    def compared(self: SimulatedKernel, *args: object, **options: Any) -> None:
        record.launches += 1
        stack = traceback.extract_stack()
        casts = options.get("arg_casts")
        for problem in binding_problems(self.parameters, args, casts, self.device, options.get("error_buf_idx")):
            record.findings.setdefault(_placed(f"{self.name}: {problem}", stack))
        launch(self, *args, **options)

    SimulatedKernel.__call__ = compared  # type: ignore[method-assign]
    try:
        yield
    finally:
        SimulatedKernel.__call__ = launch  # type: ignore[method-assign]


def _placed(message: str, stack: Sequence[traceback.FrameSummary]) -> LaunchFinding:
    """The finding at the innermost line of a family, else of the code that families share."""
    own = [frame for frame in stack if Path(frame.filename).resolve().is_relative_to(_FAMILIES)]
    inside = [frame for frame in own if not Path(frame.filename).resolve().is_relative_to(_RUNTIME)] or own
    place = inside[-1] if inside else None
    return LaunchFinding(place.filename if place else "", place.lineno or 0 if place else 0, message)


def binding_problems(
    parameters: Mapping[int, tuple[str, KernelParameter]],
    arguments: Sequence[object],
    arg_casts: ArgCasts,
    device: Device,
    error_buffer: int | None = None,
) -> Iterator[str]:
    """The problems of one launch, which does not run.

    Args:
        parameters: the kernel's parameters by buffer index: name and type.
        arguments: the arguments of the launch, in the order of the buffers.
        arg_casts: torch's `arg_casts`.
        device: the device of the tensors.
        error_buffer: the index of the buffer that torch binds itself.
    """
    expected = {index: parameter for index, parameter in parameters.items() if index != error_buffer}
    buffers = max(expected, default=-1) + 1
    if len(arguments) > buffers:
        yield f"{len(arguments)} arguments are bound, and the kernel has buffers for {buffers}"
    for index, (name, parameter) in sorted(expected.items()):
        if index >= len(arguments):
            yield f"buffer {index}, {name}, is not bound"
        elif problem := _problem(arguments[index], index, parameter, arg_casts, device):
            yield f"buffer {index}, {name}, {problem}"


def _problem(
    argument: object, index: int, parameter: KernelParameter, arg_casts: ArgCasts, device: Device
) -> str | None:
    is_number = isinstance(argument, bool | int | float)
    if is_number and parameter.writable:
        return "is written by the kernel, and a number is bound to it"
    if parameter.size and parameter.numbers and _elements(argument) > 1:
        return "is a number, and memory of several elements is bound to it"
    try:
        buffer = bind(argument, index, arg_casts, device, tight=True)
    except MetalRuntimeError as error:
        return f"cannot be bound: {error}"
    if parameter.size > buffer.available:
        return f"takes {parameter.size} bytes, and {buffer.available} are bound"
    return _of_numbers(buffer, parameter)


def _of_numbers(buffer: Buffer, parameter: KernelParameter) -> str | None:
    given = buffer.numbers, buffer.by_value, parameter.numbers
    return mistaken(*given) or of_another_width(*given)


def _elements(argument: Any) -> int:
    torch = sys.modules.get("torch")
    return int(argument.numel()) if torch is not None and isinstance(argument, torch.Tensor) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
