"""The surface that an audit met: that of the installed torch, as the simulated device's coverage profile changes it."""

from __future__ import annotations

from dataclasses import replace

from ...simulator.device.coverage_profile import CoverageProfile
from ..releases.surface import installed_surface
from ..releases.surface.overloads import Dispatch, Overload, Surface
from ..releases.surface.profiles import coverage_profile
from ..store.records import Run


def audited_surface(run: Run) -> Surface:
    """The surface of the installed torch; with another release's coverage where the run simulated that.

    Raises MpsmithError when torch is not installed, or the run's profile is no longer known.
    """
    surface = installed_surface()
    chosen = run.settings.get("profile")
    return surface if chosen is None else with_coverage(surface, coverage_profile(str(chosen)))


def with_coverage(surface: Surface, coverage: CoverageProfile) -> Surface:
    """The same overloads, dispatching as under `coverage`. Composite ones stay unless the profile has a kernel."""
    overloads = tuple(_with_coverage(overload, coverage) for overload in surface.overloads)
    return Surface(overloads, coverage.release, f"{surface.source}, with the coverage of torch {coverage.release}")


def _with_coverage(overload: Overload, coverage: CoverageProfile) -> Overload:
    name = overload.name.removeprefix("aten::")
    dispatch = overload.dispatch
    if name in coverage.always_fallback:
        dispatch = Dispatch.ALWAYS_FALLS_BACK
    elif name in coverage.native:
        dispatch = dispatch if dispatch.has_kernel else Dispatch.NATIVE
    elif not dispatch.is_composite and dispatch is not Dispatch.MISSING_EVERYWHERE:
        dispatch = Dispatch.MISSING
    return replace(overload, dispatch=dispatch, sparse=name in coverage.sparse)
