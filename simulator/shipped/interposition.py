"""Interposition: native calls on the simulated device run the shipped kernels of a release, if a convention exists.

Each call first runs the stand-in (the CPU's kernel), for shapes, dtypes, strides, resizing and refusals. Then its
values are discarded: memory that the call changes in place gets its old bytes back, other results are poisoned, and the
shipped kernel runs. If the planner declines, the stand-in's values stay, and the call is counted with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..device import kernel_plan
from ..device import loading as device
from ..errors import SimulatorError

if TYPE_CHECKING:
    from .interposed_kernel import LaunchableKernels
    from .plan import Planner

_active: list[Any] = []


def activate(library: LaunchableKernels, planners: Mapping[str, Planner] | None = None) -> None:
    """Run native overloads of the simulated device with the kernels of `library`, instead of an earlier library's.

    `planners`: by default those of the conventions. Overloads without a native kernel on the device are not replaced,
    because the release has none either.

    Raises:
        SimulatorError: the simulated device is not loaded, or this torch cannot wrap kernels.
    """
    profile = device.loaded_profile()
    if profile is None:
        raise SimulatorError("shipped kernels run under the simulated mps device, which this process has not loaded")
    import torch

    if not hasattr(torch.library, "get_kernel"):
        raise SimulatorError(f"shipped kernels need a torch with torch.library.get_kernel, not {torch.__version__}")
    deactivate()
    if planners is None:
        from .conventions import PLANNERS

        planners = PLANNERS
    native = set(kernel_plan.plan(profile).native)
    _active.append(_interpose(library, {name: planner for name, planner in planners.items() if name in native}))


def deactivate() -> None:
    """Restore the stand-ins, if `activate` was called."""
    while _active:
        _active.pop()._destroy()


def _interpose(library: LaunchableKernels, planners: Mapping[str, Planner]) -> Any:
    import torch

    from ..device.wrapped_numbers import prepare_wrapped_numbers
    from .interposed_kernel import InterposedKernel

    prepare_wrapped_numbers()
    registrations = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kernels are replaced on purpose
        for overload, planner in planners.items():
            name, _, variant = overload.partition(".")
            operator = getattr(getattr(torch.ops.aten, name), variant or "default")
            kernel = InterposedKernel(operator, overload, planner, library)
            registrations.impl(operator, kernel, "MPS", with_keyset=True, allow_override=True)  # type: ignore[no-untyped-call]
    return registrations
