"""Builds PyTorch's host code for an audit, and reports what was built and what is missing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MpsmithError
from .audit_options import AUTO
from .printing import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..simulator.upstream.manifest import TreeBuild


def built_folders(asked: Sequence[str]) -> list[str]:
    """Build host code for audits; return the manifests' folders. Raises MpsmithError before the first build.

    For `auto`, that of the installed torch's macOS wheel; no folder if this machine cannot run it.
    """
    from ..audit.running.host_code import installed_host_code, require_buildable

    if list(asked) == [AUTO]:
        prepared = installed_host_code(say, _set_up_compiler)
        return [] if prepared is None else [_described(*prepared)]
    for name in asked:
        require_buildable(name)
    if len(set(asked)) < len(asked):
        raise MpsmithError("--host-code names the same host code twice: give a base and what was changed")
    return [_built_folder(name) for name in asked]


def _set_up_compiler() -> None:
    from ..scaffold.proof.setup import compiler_is_set_up, set_up_compiler

    if not compiler_is_set_up():
        set_up_compiler(say)


def _built_folder(asked: str) -> str:
    from ..audit.running.host_code import prepare_host_code

    say(f"building the host code of {asked}, where it is not built yet (minutes)")
    folder, built = prepare_host_code(asked, lambda line: None if line.endswith(": compiled") else say(line))
    if not built.overloads:
        raise MpsmithError(f"no file of {asked} was built, so there is nothing to audit")
    return _described(folder, built)


def _described(folder: Path, built: TreeBuild) -> str:
    for line in lacking(built):
        say(line)
    say(summed(built))
    return str(folder)


def touched_operators(folders: Sequence[str]) -> tuple[str, ...]:
    """Patterns for the operators whose host code may differ between two trees; () for everything.

    `folders` have the manifests of the builds. Raises MpsmithError if two trees have the same host code.
    """
    from ..audit.cases.sources import case_sources
    from ..audit.model.operator_names import matching
    from ..simulator.upstream.manifest import read_manifest
    from ..simulator.upstream.tree_changes import touched_overloads

    builds = [built for folder in folders if (built := read_manifest(Path(folder)))]
    if len(builds) != 2 or not all(Path(built.source).is_dir() for built in builds):
        return ()
    touched = touched_overloads(*builds)
    if touched is None:
        say("a header, the backend or native_functions.yaml differs: everything is audited")
        return ()
    if not touched:
        raise MpsmithError(
            f"{builds[0].source} and {builds[1].source} do not differ in an operator: name some with --ops"
        )
    names = {name for source in case_sources(()).values() for name in source.operators()}
    patterns = []
    for overload in sorted(touched):
        with suppress(MpsmithError):  # no source has a case of it
            patterns += [overload] if matching(overload, names) else []
    if not patterns:
        raise MpsmithError(f"no case source covers the operators that differ: {', '.join(sorted(touched))}")
    say(f"auditing the operators that the differing files define: {', '.join(patterns)}")
    return tuple(patterns)


def lacking(built: TreeBuild) -> Iterator[str]:
    """A line for each file that did not build, overload that was not registered, and selector that is missing."""
    for file in built.failed:
        yield f"not built: {file.name} ({len(file.overloads)} overloads): {file.problem}"
    for overload, installed in sorted(built.changed.items()):
        yield f"not registered: {overload}, whose schema is now {installed or 'gone'}"
    for selector, files in built.selectors.items():
        yield f"raises when it is sent: {selector} ({', '.join(files)})"


def summed(built: TreeBuild) -> str:
    """A summary of the built files and of the overloads that run with them."""
    if built.wheel:
        return (
            f"host code of torch {built.source}'s macOS wheel, run as arm64 code: {len(built.overloads)} overloads and "
            "its compiled kernels; MPSGraph: stand-in, which computes graphs with the wheel's CPU operators"
        )
    done = len(built.files) - len(built.failed)
    kernels = f"the compiled ones of torch {built.kernels}" if built.kernels else "from its Metal sources"
    return (
        f"host code of {built.source}: {done} of {len(built.files)} files, {len(built.overloads)} overloads; kernels: "
        f"{kernels}; MPSGraph: stand-in, which computes graphs with torch's CPU operators"
    )
