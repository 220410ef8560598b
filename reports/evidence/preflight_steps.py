"""The steps of preflight, in a separate process: each tries one thing that an audit of a real device relies on.

`main` prints a JSON object a line: the step that begins, and how it ended. It stops at the first step that fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ...audit.running.canary import canary
from ...errors import MpsmithError, one_line
from ...metal_limits import MAX_THREADGROUP_MEMORY
from ...simulator.opening import DeviceKind, MpsDevice, open_device

# Bytes that are written and read back: an audit's worker needs several times as much.
_BYTES = 256 << 20
# Threads of the largest threadgroup that a kernel of ours is launched with.
_LARGEST_GROUP = 256
# Operators without an mps kernel in every release so far, and calls that reach them.
_WITHOUT_KERNEL: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("aten::special_airy_ai.out", lambda torch: torch.special.airy_ai(torch.ones(3, device="mps"))),
    ("aten::mode", lambda torch: torch.mode(torch.ones(3, device="mps"))),
    ("aten::multi_margin_loss", lambda torch: _multi_margin_loss(torch)),
)


class _StepError(MpsmithError):
    """A step that failed, and why."""


@cache
def _opened() -> MpsDevice:
    from ...audit.releases.surface.profiles import coverage_profile

    return open_device(DeviceKind.MPS, coverage_profile)


def device() -> str:
    """torch has an mps device here."""
    import torch

    _opened()
    return f"torch {torch.__version__} has one"


def memory() -> str:
    """The device allocates, and what is written to it can be read back."""
    import torch

    written = torch.arange(_BYTES // 8)
    on_device = written.to("mps")
    if not torch.equal(on_device.cpu(), written):
        raise _StepError(f"{_BYTES >> 20} MiB that were written to the device come back changed")
    return f"{_BYTES >> 20} MiB written and read back"


def arithmetic() -> str:
    """The device computes what the CPU computes."""
    import torch

    wrong = canary()
    if wrong:
        raise _StepError(f"the device does not compute: {wrong}")
    torch.mps.synchronize()
    return "copies, sums and products are those of the CPU"


def fallback() -> str:
    """A fallback to the CPU is detected; otherwise an audit would count everything as native."""
    import torch

    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for overload, call in _WITHOUT_KERNEL:
        if has_kernel(overload, "MPS"):
            continue
        with _opened().recorder.recording() as operators:
            call(torch)
        if overload not in operators:
            raise _StepError(f"{overload} has no mps kernel, but no warning says that it fell back")
        return f"that of {overload} was seen"
    return f"not tried: this torch has kernels for {', '.join(overload for overload, _ in _WITHOUT_KERNEL)}"


def kernels() -> str:
    """Metal compiles each kernel library of mpsmith and makes every pipeline, each large enough for our groups."""
    import torch

    from ...kernels.runtime.shader import assembled

    libraries = pipelines = 0
    for family, path in _metal_files():
        try:
            library = torch.mps.compile_shader(assembled(path))
            names = dir(library)
            for name in names:
                _check_pipeline(family, name, getattr(library, name))
        except _StepError:
            raise
        except Exception as error:  # compile_shader raises SyntaxError, making a pipeline RuntimeError
            raise _StepError(f"the kernels of {family} do not compile: {one_line(error)}") from None
        if not names:
            raise _StepError(f"the library of {family} has no kernel")
        libraries, pipelines = libraries + 1, pipelines + len(names)
    return f"{pipelines} pipelines of {libraries} libraries"


def _check_pipeline(family: str, name: str, pipeline: Any) -> None:
    threads, bytes_used = pipeline.max_threads_per_threadgroup, pipeline.static_thread_group_memory_length
    if threads < _LARGEST_GROUP:
        raise _StepError(f"{name} of {family} may have {threads} threads in a threadgroup, {_LARGEST_GROUP} are needed")
    if bytes_used > MAX_THREADGROUP_MEMORY:
        raise _StepError(
            f"{name} of {family} takes {bytes_used} bytes of threadgroup memory, not {MAX_THREADGROUP_MEMORY}"
        )


def _metal_files() -> list[tuple[str, Any]]:
    """The Metal source of each kernel family."""
    from ...kernels.runtime.catalog import families, folder_of

    files = [(family, folder_of(family) / f"{family}.metal") for family in families()]
    return [(family, path) for family, path in files if path.is_file()]


def _multi_margin_loss(torch: Any) -> Any:
    return torch.nn.functional.multi_margin_loss(
        torch.ones(1, 3, device="mps"), torch.zeros(1, dtype=torch.int64, device="mps")
    )


# By their names in evidence files, in the order in which they run.
STEPS: dict[str, Callable[[], str]] = {
    "device": device,
    "memory": memory,
    "arithmetic": arithmetic,
    "fallback": fallback,
    "kernels": kernels,
    "arithmetic again": arithmetic,
}


def main() -> int:
    """Run the steps; 1 if one failed."""
    os.environ["MPSMITH_KERNELS"] = "off"  # they would take the place of what falls back
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    for name, step in STEPS.items():
        _say(begins=name)
        try:
            _say(passed=name, note=step())
        except Exception as error:  # whatever torch raises is why the step failed
            why = str(error) if isinstance(error, MpsmithError) else f"{type(error).__name__}: {one_line(error)}"
            _say(failed=name, why=why)
            return 1
    return 0


def _say(**what: str) -> None:
    print(json.dumps(what), flush=True)
