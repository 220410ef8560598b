"""`mpsmith build`: an extension of Objective-C++ for the device of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Flags, flags_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..scaffold.building.subject import BuildSubject

SIMULATED = "Built for mpsmith's simulated device: it does not run on a Mac."


def build(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .mm file, or a folder with a setup.py.")],
    flags: Flags = "",
    as_json: AsJson = False,
) -> None:
    """Build an extension: on a Mac with its toolchain, on Linux for the simulated device, with the same source."""
    import platform
    import time

    from ..scaffold.building.subject import subject_at

    start = time.perf_counter()
    subject = subject_at(path, flags_of(flags))
    on_a_mac = platform.system() == "Darwin"
    modules = _built_on_a_mac(subject) if on_a_mac else _built_for_the_simulated_device(subject)
    seconds = round(time.perf_counter() - start, 1)
    if as_json:
        listed = [str(module) for module in modules]
        print_json({"simulated": not on_a_mac, "modules": listed, "seconds": seconds})
    if not modules:
        raise typer.Exit(1)
    if as_json:
        return
    for module in modules:
        print(f"built {module} ({seconds} s)")
    if not on_a_mac:
        print(f"{SIMULATED} Import it where the device is loaded: MPSMITH_SIMULATE=1 python ...")


def _built_on_a_mac(subject: BuildSubject) -> list[Path]:
    from ..scaffold.building import macos

    return macos.build(subject)


def _built_for_the_simulated_device(subject: BuildSubject) -> list[Path]:
    """The built modules, or none after errors; the compiler's output goes to the terminal, line by line."""
    from ..scaffold.building import simulated
    from ..simulator.objc.compiler import ExtensionBuildError

    say(f"compiling {subject.path}")
    try:
        built = simulated.build(subject)
    except ExtensionBuildError as error:
        for finding in error.diagnostics:
            print(finding, file=sys.stderr)
        if error.diagnostics:
            return []
        raise
    for module in built:
        for warning in module.warnings:
            print(warning, file=sys.stderr)
    return [module.library for module in built]
