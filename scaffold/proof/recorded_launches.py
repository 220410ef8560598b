"""The process that runs a family's calls and compares each launch with its kernel: `python -m ... FAMILY`.

Prints how many launches there were and the findings, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import MpsmithError
from ...kernels.runtime import catalog
from ...kernels.runtime.registration import enable
from ...simulator.metal import MetalRuntimeError, MetalValueError, SimulatedKernel
from ...simulator.opening import DeviceKind
from .binding_rules import binding_problems
from .family_launches import NOTHING_TO_RUN_ON

_FAMILIES = Path(catalog.__file__).resolve().parents[1]
_RUNTIME = _FAMILIES / "runtime"


@dataclass(frozen=True)
class LaunchFinding:
    """What is wrong with a launch, and the line of Python that makes it."""

    file: str
    line: int
    message: str


@dataclass
class LaunchRecord:
    """What was launched: how often, and the findings, each once."""

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
    """One call, forward and backward. What it raises is no finding of its own where a launch was one already."""
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
        except Exception:  # a refusal of the operator's own: what is asked here is what was launched until then
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
    """Inside, each launch is compared with its kernel before it happens."""
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
    """At the innermost line of a family; of what families share, where none is."""
    own = [frame for frame in stack if Path(frame.filename).resolve().is_relative_to(_FAMILIES)]
    inside = [frame for frame in own if not Path(frame.filename).resolve().is_relative_to(_RUNTIME)] or own
    place = inside[-1] if inside else None
    return LaunchFinding(place.filename if place else "", place.lineno or 0 if place else 0, message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
