"""``mpsmith doctor``: what this machine can do."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata

import typer

from .options import AsJson
from .printing import print_json

PACKAGES = ("torch", "numpy", "pebble", "pydantic", "pyyaml", "ninja", "ziglang", "hypothesis", "scipy")


@dataclass(frozen=True)
class Finding:
    """One check: what it is about, whether it is present, details, and what to do if it is absent."""

    what: str
    ok: bool
    found: str
    advice: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Show what this machine can do: a real or a simulated mps device, compilers, versions."""
    findings = [*_versions(), *_devices(), _compiler(), _metal(), _macos_libraries()]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print_table(findings)
    if not any(f.ok for f in findings if f.what in ("real mps device", "simulated mps device")):
        print("error: there is no mps device to audit, neither a real nor a simulated one", file=sys.stderr)
        raise typer.Exit(1)


def _print_table(findings: list[Finding]) -> None:
    from tabulate import tabulate

    rows = [(f.what, "yes" if f.ok else "no", f.found, f.advice) for f in findings]
    print(tabulate(rows, headers=("what", "here", "found", "what to do"), maxcolwidths=(None, None, 60, 60)))


def _versions() -> list[Finding]:
    from .. import __version__

    system = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    findings = [
        Finding("mpsmith", True, __version__),
        Finding("python", True, platform.python_version()),
        Finding("system", True, system),
    ]
    for package in PACKAGES:
        try:
            findings.append(Finding(package, True, metadata.version(package)))
        except metadata.PackageNotFoundError:
            findings.append(Finding(package, False, "not installed", f"pip install {package}"))
    return findings


def _devices() -> list[Finding]:
    from ..errors import one_line

    try:
        import torch
    except Exception as error:  # a broken installation raises any exception
        why, advice = f"torch cannot be imported: {one_line(error)}", "pip install torch"
        return [Finding(device, False, why, advice) for device in ("real mps device", "simulated mps device")]
    if torch.backends.mps.is_available():
        return [
            Finding("real mps device", True, "torch reports one", "mpsmith preflight tries it"),
            Finding("simulated mps device", False, "not needed: this machine has the real one"),
        ]
    real = Finding(
        "real mps device", False, f"torch {torch.__version__} has none here", "Apple silicon, with macOS 14 or newer"
    )
    return [real, _simulated()]


def _simulated() -> Finding:
    from ..audit.releases.surface.profiles import coverage_profile
    from ..errors import MpsmithError
    from ..simulator.opening import DeviceKind, open_device

    try:
        device = open_device(DeviceKind.SIMULATED, coverage_profile)
    except MpsmithError as error:
        return Finding("simulated mps device", False, str(error))
    return Finding("simulated mps device", True, f"loads, with the coverage of torch {device.profile}")


def _compiler() -> Finding:
    compiler = os.environ.get("CXX") or "c++"
    path = shutil.which(compiler) or shutil.which("g++") or shutil.which("clang++")
    if path is None:
        return Finding("C++ compiler", False, "none found", "apt-get install g++, or xcode-select --install")
    return Finding("C++ compiler", True, path)


def _metal() -> Finding:
    from ..simulator.clang import CompilerMissingError, installed, locate
    from ..simulator.metal.compiler import default_compiler

    try:
        default_compiler()
        return Finding("Metal on the host", True, f"ziglang {installed().version}")
    except CompilerMissingError as error:
        return Finding("Metal on the host", False, str(error), "" if locate() else "pip install 'mpsmith[metal]'")


def _macos_libraries() -> Finding:
    from ..simulator.errors import MachOError
    from ..simulator.macho.machine import ADVICE, arm64_command

    what = "libraries for macOS"
    try:
        command = arm64_command()
    except MachOError as error:
        return Finding(what, False, str(error), ADVICE if sys.platform == "linux" else "")
    return Finding(what, True, f"run in {command[0]}" if command else "run on this arm64 machine")
