"""`python tests/mutation/wheel_messages.py`: which faults of a wheel's host code does an audit find?

Each fault changes what the release's own code asks of Metal in calls of one operator: the messages between its process
and the kernels. The operators are audited with quick samples of some sources, without the faults and with all of them,
each of another operator. A fault is found if a case of its operator fails that did not before. Words select faults by
kind or operator. The module is also what the workers import, which plants the faults there.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpsmith.audit.model.selection import MacOS, Samples, Settings
from mpsmith.audit.running.host_code import prepare_host_code
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.self_test.host_faults import CaseResult, HostFault, fault_result, table
from mpsmith.audit.store.store import Store
from mpsmith.errors import MpsmithError
from mpsmith.simulator.macho.device_kernels import WheelKernels
from mpsmith.simulator.macho.kernel_requests import KernelRequests
from mpsmith.simulator.objc.bridge import MetalBinding, MetalLaunch
from mpsmith.simulator.opening import DeviceKind

RELEASE = "2.13.0"
SOURCES = ("opinfo", "layouts", "targets")
# In the environment of workers: what to plant, and the folder for a file for each fault that applied.
SELECTED, NOTED = "MPSMITH_PLANTED_FAULTS", "MPSMITH_PLANTED_NOTES"

Rows = list[MetalBinding]


def _swap_inputs(launch: MetalLaunch, rows: Rows) -> bool:
    if len(rows) < 3 or rows[1].address == rows[2].address:
        return False
    for name in ("address", "base", "size"):
        first, second = getattr(rows[1], name), getattr(rows[2], name)
        setattr(rows[1], name, second)
        setattr(rows[2], name, first)
    return True


def _drop_a_thread(launch: MetalLaunch, rows: Rows) -> bool:
    if launch.grid[0] < 2:
        return False
    launch.grid[0] -= 1
    return True


def _drop_offsets(launch: MetalLaunch, rows: Rows) -> bool:
    behind = [row for row in rows if row.address != row.base]
    for row in behind:
        row.address = row.base
    return bool(behind)


def _change_bytes(launch: MetalLaunch, rows: Rows) -> bool:
    """The first number among the arguments becomes the next one, in the memory that the message names."""
    row = next((row for row in rows if row.size == 16), None)
    if row is None:
        return False
    ctypes.c_uint32.from_address(row.address).value += 1
    return True


def _launch_nothing(launch: MetalLaunch, rows: Rows) -> bool:
    launch.grid[0] = 0
    return True


# Each returns whether it applies to the launch.
CHANGES: dict[str, Callable[[MetalLaunch, Rows], bool]] = {
    "swapped inputs": _swap_inputs,
    "a thread too few": _drop_a_thread,
    "dropped offsets": _drop_offsets,
    "another number": _change_bytes,
    "no launch": _launch_nothing,
}
OPERATORS = {
    "swapped inputs": "sub div atan2 fmod remainder copysign gt le hypot ge nextafter",
    "a thread too few": "exp log tanh sqrt add mul cumsum cumprod log1p",
    "dropped offsets": "neg abs reciprocal rsqrt expm1 exp2",
    "another number": "lerp clamp_min tril clamp_max",
    "no launch": "sigmoid sinc triu fill log2 atan",
}
KERNEL_PAIRS = "sin:cos round:trunc erf:erfc fmin:fmax cosh:sinh asin:acos tan:atan i0:i1"
OTHER_KERNELS = dict(pair.split(":") for pair in KERNEL_PAIRS.split())
FAULTS = [
    *(
        HostFault(kind=kind, file="launch", operators=(operator,), was=kind, becomes="", macos=MacOS.TAHOE)
        for kind, operators in OPERATORS.items()
        for operator in operators.split()
    ),
    *(
        HostFault(kind="another kernel", file="kernel", operators=(operator,), was=f"{operator}_", becomes=f"{other}_")
        for operator, other in OTHER_KERNELS.items()
    ),
]


def changed(fault: HostFault, kind: str, request: bytes) -> bytes | None:
    """The request of the kind with the fault; None where it does not apply."""
    if kind != fault.file:
        return None
    if kind == "kernel":
        number, name = request[:8], request[8:].decode()
        other = fault.becomes + name.removeprefix(fault.was)
        return number + other.encode() if name.startswith(fault.was) else None
    launch = MetalLaunch.from_buffer_copy(request, 8)
    first = 8 + ctypes.sizeof(MetalLaunch)
    rows = list((MetalBinding * launch.binding_count).from_buffer_copy(request, first))
    if not CHANGES[fault.kind](launch, rows):
        return None
    return request[:8] + bytes(launch) + b"".join(map(bytes, rows))


def plant(faults: Sequence[HostFault], noted: Path) -> None:
    """Let calls of the operators in this process send changed messages, and note each fault that applied."""
    by_operator = {fault.operators[0]: fault for fault in faults}
    now: list[HostFault] = []
    compute, answer = WheelKernels.compute, KernelRequests.answer

    def watched(kernels: WheelKernels, overload: str, *rest: Any) -> Any:
        fault = by_operator.get(overload.partition(".")[0].removesuffix("_"))
        now[:] = [fault] if fault else []
        try:
            return compute(kernels, overload, *rest)
        finally:
            now.clear()

    def planted(requests: KernelRequests, kind: str, request: bytes) -> bytes:
        for fault in now:
            content = changed(fault, kind, request)
            if content is None:
                continue
            (noted / fault.operators[0]).touch()
            if kind == "launch" and MetalLaunch.from_buffer_copy(content, 8).grid[0] == 0:
                return bytes(16)  # it went well, and says nothing
            request = content
        return answer(requests, kind, request)

    WheelKernels.compute, KernelRequests.answer = watched, planted  # type: ignore[method-assign, assignment]


def _results(
    faults: Sequence[HostFault], folder: Path, path: Path, imports: tuple[str, ...]
) -> Mapping[str, CaseResult]:
    settings = Settings(
        samples=Samples.QUICK,
        ops=tuple(sorted(fault.operators[0] for fault in faults)),
        dtypes=("float32",),
        sources=SOURCES,
        device=DeviceKind.SIMULATED,
        workers=1,
        host_code=str(folder),
        macos=MacOS.TAHOE,
        imports=imports,
    )
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        cases = store.cases(run.id)
        return {case.label: CaseResult(case.group.operator, case.outcome.verdict, case.fault_message) for case in cases}


def main(words: Sequence[str]) -> int:
    """Plant the faults with one of the words, all without words; 1 unless all that applied are found."""
    faults = [f for f in FAULTS if not words or any(word in f"{f.kind} {f.operators[0]}" for word in words)]
    if not faults:
        raise MpsmithError(f"no fault has one of these words: {', '.join(words)}")
    folder, built = prepare_host_code(RELEASE, print)
    if not built.wheel:
        raise MpsmithError(f"the wheel of torch {RELEASE} cannot be run here")
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        noted = Path(temporary) / "noted"
        noted.mkdir()
        clean = _results(faults, folder, Path(temporary) / "clean.sqlite", ())
        os.environ |= {
            "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            NOTED: str(noted),
            SELECTED: ",".join(fault.operators[0] for fault in faults),
        }
        faulty = _results(faults, folder, Path(temporary) / "faults.sqlite", (Path(__file__).stem,))
        results = [fault_result(fault, faulty, clean) for fault in faults]
        reached = {path.name for path in noted.iterdir()}
    print(table([result for result in results if result.fault.operators[0] in reached]))
    for result in results:
        if result.fault.operators[0] not in reached:
            print(f"applies to no message: {result.fault.kind}, {result.fault.operators[0]}")
    return 0 if all(result.failing for result in results if result.fault.operators[0] in reached) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MpsmithError as error:
        sys.exit(f"error: {error}")
elif __name__ == Path(__file__).stem and SELECTED in os.environ:  # not what a worker makes of the main module
    chosen = os.environ[SELECTED].split(",")
    plant([fault for fault in FAULTS if fault.operators[0] in chosen], Path(os.environ[NOTED]))
