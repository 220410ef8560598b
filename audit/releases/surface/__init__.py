"""The surface of a release, from the yaml of the installed torch or of any release since 1.12.

It is classified from declarations, so it needs neither torch nor a Mac. What hand-written C++ adds to the
declarations is read from the release data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....cache import cache_folder, fingerprint, fingerprint_of_code
from ....registry.torch_release import public_version
from .. import data as release_data
from ..data import ReleaseFacts
from . import json_form as surface_json
from . import native_functions
from .derivatives import differentiable_overloads
from .native_functions import NativeFunction
from .overloads import Dispatch, Overload, Surface, SurfaceSummary
from .reachability import NEVER_BUILT, Reach, Reachable, Unreachable, reach_of

__all__ = [
    "Dispatch",
    "Overload",
    "Reach",
    "Reachable",
    "Surface",
    "SurfaceSummary",
    "Unreachable",
    "classified",
    "installed_surface",
    "surface_of",
]

COMPOSITE_EXPLICIT_KEYS = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")

# The code and data that decide the content of a surface besides the yaml: a change in any of these files voids the
# cache. A test checks that they include everything that this module imports.
DECIDED_BY = ("audit.releases", "registry.torch_release", "errors")


def surface_of(
    native_functions_yaml: bytes,
    derivatives_yaml: bytes | None,
    release: str,
    source: str | None = None,
    facts: ReleaseFacts | None = None,
) -> Surface:
    """Classify every overload that a release's yaml declares.

    Without `derivatives_yaml` (releases before 2.1 do not ship it) no overload has an autograd formula. `facts` say
    what the release's binary adds; by default, those of the release data (`release_data.facts_for`).
    Raises MpsmithError if a text is malformed.
    """
    source = source or f"native_functions.yaml of torch {release}"
    return classified(native_functions.parse(native_functions_yaml, source), derivatives_yaml, release, source, facts)


def classified(
    functions: Sequence[NativeFunction],
    derivatives_yaml: bytes | None,
    release: str,
    source: str,
    facts: ReleaseFacts | None = None,
) -> Surface:
    """As `surface_of`, for a yaml that was already read."""
    differentiable: frozenset[str] = frozenset()
    if derivatives_yaml is not None:
        title = f"derivatives.yaml of torch {release}"
        differentiable = differentiable_overloads(functions, derivatives_yaml, title)
    facts = facts or release_data.facts_for(release)
    by_name = {function.name: function for function in functions}
    listed = [_overload(function, by_name, differentiable, facts) for function in functions]
    generated = [
        _generated(name, function, origin)
        for function, origin in zip(functions, listed, strict=True)
        for name in function.autogen
        if name not in by_name
    ]
    return Surface(tuple(listed + generated), release, source)


def declared_dispatch(function: NativeFunction, delegate: NativeFunction | None) -> Dispatch:
    """How a function dispatches according to the yaml; `delegate` is its structured out overload, if it has one.

    A structured delegate has every kernel of its out overload.
    """
    inherited = delegate.dispatch if delegate else {}
    if "MPS" in function.dispatch:
        return Dispatch.NATIVE
    if "MPS" in inherited:
        return Dispatch.STRUCTURED_DELEGATE
    if "CompositeImplicitAutograd" in function.dispatch or function.composite:
        return Dispatch.COMPOSITE_IMPLICIT
    keys = {*function.dispatch, *inherited}
    if not keys.isdisjoint(COMPOSITE_EXPLICIT_KEYS):
        return Dispatch.COMPOSITE_EXPLICIT
    return Dispatch.MISSING if "CPU" in keys else Dispatch.MISSING_EVERYWHERE


def _overload(
    function: NativeFunction,
    by_name: Mapping[str, NativeFunction],
    differentiable: frozenset[str],
    facts: ReleaseFacts | None,
) -> Overload:
    delegate = by_name.get(function.structured_delegate) if function.structured_delegate else None
    declared = declared_dispatch(function, delegate)
    dispatch = _with_hand_written(function, declared, facts) if facts else declared
    sparse, compressed = "SparseMPS" in function.dispatch, "SparseCsrMPS" in function.dispatch
    has_mps_kernel = dispatch.has_kernel or sparse or compressed
    return Overload(
        name=f"aten::{function.name}",
        operator=f"aten::{function.operator}",
        schema=f"aten::{function.schema}",
        tags=function.tags,
        has_autograd_formula=function.name in differentiable,
        dispatch=dispatch,
        declared=declared,
        reach=reach_of(function, has_mps_kernel=has_mps_kernel, composite=declared.is_composite),
        sparse=sparse,
        sparse_compressed=compressed,
        python_module=function.python_module,
        delegates_to=f"aten::{function.structured_delegate}" if function.structured_delegate else None,
    )


def _with_hand_written(function: NativeFunction, declared: Dispatch, facts: ReleaseFacts) -> Dispatch:
    """The dispatch including what C++ or Python registers by hand; for a delegate, also for its out overload."""
    if declared.has_kernel:
        return declared
    if function.name in facts.undeclared_kernels:
        return Dispatch.NATIVE
    if function.structured_delegate in facts.undeclared_kernels:
        return Dispatch.STRUCTURED_DELEGATE
    if not {function.name, function.structured_delegate}.isdisjoint(facts.always_falls_back):
        return Dispatch.ALWAYS_FALLS_BACK
    return declared


def _generated(name: str, function: NativeFunction, origin: Overload) -> Overload:
    """The overload `name` that an `autogen:` lists. It is composite explicit: it calls the overload that lists it.

    PyTorch generates none for an overload without any `dispatch:`, unless that is one of the core operators.
    """
    without_kernel = function.composite and "core" not in function.tags
    dispatch = Dispatch.MISSING_EVERYWHERE if without_kernel else Dispatch.COMPOSITE_EXPLICIT
    return Overload(
        name=f"aten::{name}",
        operator=f"aten::{native_functions.operator_of(name)}",
        schema="",
        tags=function.tags,
        has_autograd_formula=origin.has_autograd_formula and not name.endswith("out"),
        dispatch=dispatch,
        declared=dispatch,
        reach=Unreachable(NEVER_BUILT.name, NEVER_BUILT.reason) if without_kernel else origin.reach,
        python_module=function.python_module,
        generated_from=origin.name,
    )


def installed_surface(functions: Sequence[NativeFunction] | None = None) -> Surface:
    """The surface of the installed torch. Imports no torch; a second call reads a cache of one JSON file.

    `functions`: the declarations of the yaml, if the caller has read them already.
    Raises MpsmithError if torch is not installed or its yaml cannot be read.
    """
    native_path = native_functions.installed_path()
    derivatives_path = native_functions.installed_derivatives_path()
    native_text = native_path.read_bytes()
    derivatives_text = derivatives_path.read_bytes() if derivatives_path else None
    release = native_functions.installed_release()
    cached = _cache_file(str(native_path), native_text, derivatives_text, release)
    surface = surface_json.read_surface(cached)
    if surface is None:
        functions = functions or native_functions.parse(native_text, str(native_path))
        surface = classified(functions, derivatives_text, release, str(native_path))
        surface_json.write_surface(cached, surface)
    return surface


def _cache_file(source: str, native_text: bytes, derivatives_text: bytes | None, release: str) -> Path:
    """The path has a hash of the texts and of the code and data that classify them, so a stale entry is never read."""
    code = fingerprint_of_code(*DECIDED_BY)
    key = fingerprint(code, release, source, native_text, derivatives_text or b"")
    return cache_folder() / "surface" / f"{public_version(release)}-{key[:16]}.json"
