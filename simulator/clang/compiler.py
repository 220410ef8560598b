"""The clang inside the `ziglang` wheel: its location, its identity, and how to run it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...cache import cache_folder, fingerprint
from ..errors import CompilerLimitError, CompilerMissingError

# `diagnostics.messages` reads output without carets and colors.
PLAIN_MESSAGES = ("-fno-caret-diagnostics", "-fno-color-diagnostics")


@dataclass(frozen=True)
class ToolRun:
    """The result of a tool."""

    succeeded: bool
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Limits:
    """Resource limits for one run of the compiler: untrusted code may need any amount.

    Attributes:
        seconds: wall-clock time.
        memory: bytes of address space.
        processor_seconds: processor time, which does not depend on the load; None for no limit.
    """

    seconds: float
    memory: int
    processor_seconds: int | None = None


@dataclass(frozen=True)
class Clang:
    """The compiler in a folder, such as that of the `ziglang` package."""

    folder: Path

    @property
    def program(self) -> Path:
        """The executable, which contains clang, lld and zig's linker."""
        return self.folder / "zig"

    @property
    def headers(self) -> Path:
        """The folder with the headers of clang, libc++ and the C libraries of the targets."""
        return self.folder / "lib"

    @cached_property
    def version(self) -> str:
        """The version of the package, such as `0.17.0`; empty if it is unknown."""
        versions = (re.fullmatch(r"ziglang-(.+)\.dist-info", path.name) for path in self.folder.parent.iterdir())
        return next((version[1] for version in versions if version), "")

    @cached_property
    def identity(self) -> str:
        """A key that changes with the compiler and the machine."""
        return fingerprint(self.version, str(self.program.stat().st_size), platform.system(), platform.machine())

    def run(
        self, tool: str, *arguments: str, source: str = "", limits: Limits | None = None, cache: Path | None = None
    ) -> ToolRun:
        """Run `clang`, `ld.lld` or `cc` (clang with zig's choice of linker); `source` is its standard input.

        `cache`: the folder of the system libraries that zig builds; by default the one that all callers share.
        A run that exceeds its memory limit fails like one with invalid source.

        Raises:
            CompilerMissingError: the program does not start.
            CompilerLimitError: it exceeds its time limits.
        """
        # Zig caches built libraries, by default in folders that may not be writable.
        place = str(cache or cache_folder() / "zig")
        kept = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), place)
        try:
            process = subprocess.Popen(
                [str(self.program), tool, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=os.environ | kept,
            )
        except OSError as error:
            raise CompilerMissingError(f"the compiler of the ziglang package does not start: {error}") from None
        with process:
            if limits:
                limit(process.pid, limits)
            try:
                stdout, stderr = process.communicate(source, timeout=limits.seconds if limits else None)
            except subprocess.TimeoutExpired as expired:
                process.kill()
                raise CompilerLimitError(f"it takes the compiler more than {expired.timeout:g} s") from None
            except BaseException:
                process.kill()
                raise
        if limits and process.returncode == -signal.SIGXCPU:
            raise CompilerLimitError(f"it takes the compiler more than {limits.processor_seconds} s of processor time")
        return ToolRun(process.returncode == 0, stdout, stderr)


def limit(process: int, limits: Limits) -> None:
    """Limit the resources of a process that has just started, if the system can."""
    import resource

    set_limit = getattr(resource, "prlimit", None)  # Linux
    if not set_limit:
        return
    with contextlib.suppress(ProcessLookupError):
        set_limit(process, resource.RLIMIT_AS, (limits.memory, limits.memory))
        if limits.processor_seconds is not None:
            # The first limit sends SIGXCPU, the second SIGKILL.
            set_limit(process, resource.RLIMIT_CPU, (limits.processor_seconds, limits.processor_seconds + 1))


def locate(more: Sequence[Path] = ()) -> Clang | None:
    """The compiler of the installed ziglang package, else of the first folder in `more` that has one, else None."""
    spec = importlib.util.find_spec("ziglang")
    packaged = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    return next((Clang(folder) for folder in (*packaged, *more) if (folder / "zig").is_file()), None)


def installed() -> Clang:
    """The compiler of the installed ziglang package.

    Raises:
        CompilerMissingError: it is not installed, or not whole.
    """
    clang = locate()
    if clang is not None:
        return clang
    if importlib.util.find_spec("ziglang") is not None:
        raise CompilerMissingError(
            "the ziglang package has no compiler in it: run pip install --force-reinstall 'mpsmith[metal]'"
        )
    raise CompilerMissingError("no compiler for Metal source: run pip install 'mpsmith[metal]'")
