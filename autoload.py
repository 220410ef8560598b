"""The entry point that torch calls at the end of `import torch`. Environment variables select what it loads.

They are inherited, so a child process or a spawned worker loads the same as its parent.
"""

import os
import warnings

VARIABLE = "MPSMITH_AUTOLOAD"


def autoload() -> None:
    """Load the simulated device if MPSMITH_SIMULATE is set, and `mpsmith.kernels` if MPSMITH_AUTOLOAD is 1.

    MPSMITH_SIMULATE is 1 for the coverage of the installed torch, or a profile as for `mpsmith audit --profile`.
    In a program that `mpsmith trace` runs, record what it does on mps.
    Every failure is only a warning, because an exception here would make `import torch` fail.
    """
    if os.environ.get("MPSMITH_TRACE"):
        try:
            from mpsmith.tracing.process import begin

            begin()
        except Exception as error:
            warnings.warn(f"`mpsmith trace` cannot record this process: {error}", stacklevel=2)
    if os.environ.get("MPSMITH_SIMULATE"):
        try:
            _simulate()
        except Exception as error:
            message = f"MPSMITH_SIMULATE is set, but there is no simulated mps device: {error}. torch works without it."
            warnings.warn(message, stacklevel=2)
    if os.environ.get(VARIABLE) == "1":
        try:
            import mpsmith.kernels  # noqa: F401
        except Exception as error:
            message = f"{VARIABLE}=1, but mpsmith.kernels cannot be imported: {error}. torch works without it."
            warnings.warn(message, stacklevel=2)


def _simulate() -> None:
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator.device import inheritance
    from mpsmith.simulator.opening import DeviceKind, open_device

    if inheritance.is_wanted():
        open_device(DeviceKind.SIMULATED, coverage_profile, inheritance.wanted_profile())
