"""The options of `mpsmith audit`, and the check of what can be combined."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ..audit.model.selection import MacOS, Settings, Shapes, ShippedSamples
from ..errors import MpsmithError
from ..simulator.opening import DeviceKind
from .options import CASES, DEVICE, EXECUTION, require_profile

_AFTERWARDS = "Afterwards"
AUTO = "auto"
# A day: what an audit may spend on one case.
LONGEST_TIMEOUT = 86_400.0
MOST_MEMORY_GIB = 2.0**20
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^\s:/]+:\d+|inproc://\S+")

Dtypes = Annotated[
    list[str] | None, typer.Option(rich_help_panel=CASES, help="Only these dtypes; repeated or joined by commas.")
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=CASES,
        help="Only cases from these sources, such as opinfo, layouts, forms; repeated or joined by commas.",
    ),
]
Large = Annotated[
    bool,
    typer.Option(
        "--large",
        rich_help_panel=CASES,
        help="Also tensors of more than 2^31 elements: 9 to 25 GiB of memory a case, skipped where there is less;"
        " raise --memory-limit and lower --workers.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=-(2**63),
        max=2**63 - 1,
        rich_help_panel=CASES,
        help="Seed of the inputs: the same seed gives the same cases on every machine.",
    ),
]
Imports = Annotated[
    list[str] | None,
    typer.Option("--import", rich_help_panel=CASES, help="A package to import in the workers; may be repeated."),
]
Shipped = Annotated[
    str,
    typer.Option(
        metavar="RELEASE",
        rich_help_panel=DEVICE,
        help="Simulated device: compute with the Metal kernels in the macOS wheel of this torch release. Several, "
        "joined by commas, are audited one after the other and compared. auto: those of the installed release, if they "
        "are in the cache or can be fetched; none: the CPU computes.",
    ),
]
HostCode = Annotated[
    str | None,
    typer.Option(
        "--host-code",
        "--with-source",
        metavar="RELEASE|FOLDER|auto",
        rich_help_panel=DEVICE,
        help="Simulated device: compute with PyTorch's own mps host code, of a release or of a folder with its source "
        "(docs/host_code.md). auto: that in the installed release's macOS wheel, if this machine can run it, else "
        "--shipped auto. Two, joined by a comma, such as a base and a pull request, are audited one after the "
        "other and compared: new wrong results first.",
    ),
]
MacOSVersions = Annotated[
    str | None,
    typer.Option(
        "--macos",
        metavar="VERSION",
        rich_help_panel=DEVICE,
        help="With --host-code: the version of macOS that it sees, 13.3, 14.0, 15.1 or 26 (the default). Several, "
        "joined by commas, are audited one after the other and compared.",
    ),
]
WithKernels = Annotated[
    bool,
    typer.Option(
        "--with-kernels", rich_help_panel=EXECUTION, help="Audit twice, without and with mpsmith.kernels, and compare."
    ),
]
Compile = Annotated[
    bool,
    typer.Option(
        "--compile",
        rich_help_panel=EXECUTION,
        help="Run every call under torch.compile and record what Inductor generates; kept apart from the other audits "
        "of the store, and shown by `mpsmith report --compiled`.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=EXECUTION, help="Continue the audit that was stopped.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        rich_help_panel=EXECUTION,
        help="Execute on the workers of this Dask scheduler, such as tcp://host:8786 (docs/cluster.md).",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=LONGEST_TIMEOUT,
        rich_help_panel=EXECUTION,
        help="Seconds of processor time that one case may take; five times as many on the wall clock.",
    ),
]
MemoryLimit = Annotated[
    float,
    typer.Option(
        min=0,
        max=MOST_MEMORY_GIB,
        rich_help_panel=EXECUTION,
        help="GiB of data that a worker may hold, 0 for no limit (Linux).",
    ),
]
Sync = Annotated[
    bool, typer.Option("--sync", rich_help_panel=_AFTERWARDS, help="Update the registry's measured fields.")
]
Report = Annotated[
    bool, typer.Option("--report", rich_help_panel=_AFTERWARDS, help="Write the reports under reports/published.")
]

MINIMUM_MEMORY_GIB = 1.0
"""What a worker needs before its first case: torch, the test samples and what they import."""

# What one option cannot be combined with. "--shipped A,B" is --shipped with several releases, and so --host-code.
_CONFLICTS = {
    "--compile": ("--with-kernels", "--shipped", "--host-code"),
    "--host-code": ("--with-kernels", "--shipped", "--cluster"),
    "--with-kernels": ("--resume", "--sync", "--report"),
    "--shipped A,B": ("--with-kernels", "--sync", "--report"),
    "--host-code A,B": ("--resume", "--sync", "--report"),
    "--macos A,B": ("--host-code A,B", "--resume", "--sync", "--report"),
    "--cluster": ("--workers",),
}

SHAPES_VARIABLE, SHIPPED_SAMPLES_VARIABLE = "MPSMITH_SHAPES", "MPSMITH_SHIPPED_SAMPLES"

V = TypeVar("V", bound=Enum)


@dataclass(frozen=True)
class AuditRequest:
    """The options of `mpsmith audit`.

    Attributes:
        settings: the settings of the run, or of the first of several.
        store: where results are stored.
        shipped, host_code: the values of --shipped and --host-code.
        macos: the versions of macOS of --macos; () if it was not given.
        with_kernels: audit without and with mpsmith.kernels.
        resume: continue the audit that was stopped.
        cluster: the address of a Dask scheduler.
        sync, report: update the registry, write the reports.
        as_json: print JSON.
    """

    settings: Settings
    store: Path
    shipped: str = "none"
    host_code: str | None = None
    macos: tuple[MacOS, ...] = ()
    with_kernels: bool = False
    resume: bool = False
    cluster: str | None = None
    sync: bool = False
    report: bool = False
    as_json: bool = False

    def check(self, *, workers: bool) -> None:
        """Raise BadParameter for options that cannot be combined; `workers`: --workers was given."""
        from ..reports.evidence.machine import is_mac

        options = {
            "--compile": self.settings.compiled is not None,
            "--host-code": self.host_code is not None,
            "--host-code A,B": "," in (self.host_code or ""),
            "--macos A,B": len(self.macos) > 1,
            "--shipped": self.shipped != "none",
            "--shipped A,B": "," in self.shipped,
            "--with-kernels": self.with_kernels,
            "--resume": self.resume,
            "--cluster": self.cluster is not None,
            "--workers": workers,
            "--sync": self.sync,
            "--report": self.report,
        }
        for option, others in _CONFLICTS.items():
            if options[option] and (conflicting := [other for other in others if options[other]]):
                raise typer.BadParameter(f"cannot be combined with {', '.join(conflicting)}", param_hint=option)
        if self.macos and self.host_code is None and not self.resume:
            raise typer.BadParameter(
                "no effect without --host-code: only PyTorch's own host code asks for the version", param_hint="--macos"
            )
        if self.cluster is not None and not _ADDRESS.fullmatch(self.cluster):
            raise typer.BadParameter(
                f"{self.cluster!r} is not the address of a Dask scheduler, such as tcp://host:8786",
                param_hint="--cluster",
            )
        if self.cluster is None and self.settings.device is not DeviceKind.SIMULATED and is_mac():
            shipped = "" if self.shipped in ("none", "auto") else self.shipped
            host_code = "" if self.host_code == AUTO else self.host_code
            given = {"--profile": self.settings.profile, "--shipped": shipped, "--host-code": host_code}
            for option in filter(given.get, given):
                raise typer.BadParameter("is for the simulated device, which needs Linux", param_hint=option)
        if self.cluster is None:
            require_packages(self.settings.imports)
            require_profile(self.settings.profile)
        refuse_unknown_operators(self.settings)


def macos_versions(text: str | None) -> tuple[MacOS, ...]:
    """The versions that --macos names, in its order; () if it was not given.

    Raises BadParameter for an unknown or empty version, and for one that is named twice.
    """
    if text is None:
        return ()
    names, versions = [name.strip() for name in text.split(",")], [version.value for version in MacOS]
    for name in names:
        if name not in versions:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(versions)}", param_hint="--macos")
        if names.count(name) > 1:
            raise typer.BadParameter(f"names {name} twice", param_hint="--macos")
    return tuple(MacOS(name) for name in names)


def memory_limit_in_bytes(gib: float) -> int:
    """The limit in bytes. Raises MpsmithError if no worker could start with it."""
    if 0 < gib < MINIMUM_MEMORY_GIB:
        raise MpsmithError(
            f"--memory-limit {gib:g}: no worker starts with so little; give at least {MINIMUM_MEMORY_GIB:g}"
        )
    return int(gib * 2**30)


def require_packages(names: Iterable[str]) -> None:
    """Raise MpsmithError for a package that is not installed here, before any worker starts."""
    for name in names:
        first = name.partition(".")[0]
        if not first.isidentifier() or find_spec(first) is None:
            raise MpsmithError(f"--import {name}: ModuleNotFoundError: No module named {first!r}")


def refuse_unknown_operators(settings: Settings) -> None:
    """Raise MpsmithError for an operator that no case source has, before torch is imported.

    Only mpsmith's own data are used. If packages add operators, or torch is not the audited release, the workers
    decide.
    """
    from ..audit.answers.answer import audited_release, require_known
    from ..audit.releases.surface.native_functions import installed_release
    from ..registry.torch_release import base_version

    if settings.ops and not settings.imports and base_version(installed_release()) == audited_release():
        require_known(settings.ops)


def shapes_of_compiled_calls() -> Shapes:
    """How torch.compile treats sizes, from MPSMITH_SHAPES: static (the default), dynamic or both."""
    return _from_variable(Shapes.STATIC, SHAPES_VARIABLE)


def shipped_samples() -> ShippedSamples:
    """How many cases run shipped kernels, from MPSMITH_SHIPPED_SAMPLES: default or all."""
    return _from_variable(ShippedSamples.DEFAULT, SHIPPED_SAMPLES_VARIABLE)


def _from_variable(default: V, variable: str) -> V:
    kind = type(default)
    text = os.environ.get(variable) or default.value
    if text not in (choice.value for choice in kind):
        raise MpsmithError(f"{variable}={text}: give one of {', '.join(choice.value for choice in kind)}")
    return kind(text)
