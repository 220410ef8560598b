"""Coverage profiles: which overloads are native on the simulated mps device, as in some torch release."""

from __future__ import annotations

from pathlib import Path

from ....errors import MpsmithError
from ....registry.torch_release import base_version, public_version
from ....simulator.device.coverage_profile import CoverageProfile
from .. import data as release_data
from ..data import ReleaseData
from . import installed_surface, native_functions, surface_of
from .overloads import Dispatch, Surface


def coverage_profile(name: str | None) -> CoverageProfile:
    """The profile of the installed torch (None), of a known release (`2.0.1`), or of a file.

    A file is a native_functions.yaml, or a profile that `CoverageProfile.to_json` wrote. A known release needs no
    download. Raises MpsmithError that lists the known releases for any other name.
    """
    if name is None:
        return profile_of(installed_surface())
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return _profile_of_file(path)
    if path.suffix == ".json":
        return CoverageProfile.from_json(path)
    data = release_data.load()
    return _profile_of_release(data, data.index(name))


def profile_of(surface: Surface) -> CoverageProfile:
    """The profile of any surface. Overloads of other namespaces than aten are not part of it."""
    overloads = {overload.name.removeprefix("aten::"): overload for overload in surface.overloads}
    facts = release_data.facts_for(surface.release)
    falling_back = facts.always_falls_back if facts else ()
    own = _registered_by_torch(surface.release)
    return CoverageProfile(
        release=public_version(surface.release),
        native=frozenset(
            name
            for name, overload in overloads.items()
            if (overload.declared.has_kernel or overload.dispatch is Dispatch.NATIVE) and name not in own
        ),
        sparse=frozenset(name for name, overload in overloads.items() if overload.sparse),
        always_fallback=frozenset(falling_back).intersection(overloads),
    )


def _profile_of_file(path: Path) -> CoverageProfile:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise MpsmithError(f"cannot read the profile {path}: {error.strerror}") from None
    return profile_of(surface_of(text, None, path.stem, str(path)))


def _profile_of_release(data: ReleaseData, position: int) -> CoverageProfile:
    facts = data.releases[position]
    kernels = {dispatch.value for dispatch in Dispatch if dispatch.has_kernel}
    histories = data.overloads.values()
    return CoverageProfile(
        release=facts.release,
        native=frozenset(history.name for history in histories if history.dispatch[position] in kernels).union(
            set(facts.undeclared_kernels) - _registered_by_torch(facts.release)
        ),
        sparse=frozenset(history.name for history in histories if history.sparse[position]),
        always_fallback=frozenset(facts.always_falls_back),
    )


def _registered_by_torch(release: str) -> frozenset[str]:
    """The release's Python kernels if it is the installed one, because that torch registers them itself."""
    installed = base_version(native_functions.installed_release())
    facts = release_data.facts_for(release)
    is_installed = base_version(release) == installed
    return frozenset(facts.python_kernels) if facts and is_installed else frozenset()
