"""Options that several commands share, and how their values are read. Imports no command."""

from __future__ import annotations

import errno
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..audit.model.selection import Samples
from ..errors import MpsmithError
from ..simulator.opening import DeviceKind

DEFAULT_STORE = Path("audit.sqlite")

# The panels of `--help` that options of audits are shown in.
CASES, DEVICE, EXECUTION = "Which cases", "On which device", "How they are executed"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

StorePath = Annotated[Path, typer.Option("--store", metavar="FILE", help="The results store, an SQLite file.")]

Flags = Annotated[
    str,
    typer.Option(
        "--flags",
        metavar="FLAGS",
        help="The compiler's flags for .mm files, as one word: '-Isrc -DN=2 -std=c++20 -fobjc-arc'.",
        show_default=False,
    ),
]

Release = Annotated[
    str | None,
    typer.Option("--torch", metavar="RELEASE", help="A torch release such as 2.15.0; default: the installed one."),
]

Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--ops",
        metavar="OP",
        help="Only these operators: a name, aten::name or a pattern such as 'linalg*'; repeated or joined by commas.",
    ),
]

AuditedOperators = Annotated[
    list[str] | None,
    typer.Option(
        "--ops",
        metavar="OP",
        rich_help_panel=CASES,
        help="Only these operators. A name selects all its overloads and forms, from every source; an overload such as "
        "'pow.Tensor_Tensor' its own cases, as 'aten::pow.Tensor_Tensor' also those that may call it; a pattern such "
        "as 'linalg*' what it matches. Repeated or joined by commas.",
    ),
]

SampleLevel = Annotated[
    Samples | None,
    typer.Option(
        "--samples",
        rich_help_panel=CASES,
        help="How many cases of each operator and dtype.",
        show_default="default; quick with --compile, and for evidence",
    ),
]

Device = Annotated[
    DeviceKind,
    typer.Option(rich_help_panel=DEVICE, help="auto: the real mps device if there is one, else the simulated one."),
]

Profile = Annotated[
    str | None,
    typer.Option(
        metavar="RELEASE",
        rich_help_panel=DEVICE,
        help="Simulated device: the coverage of this torch release, such as 2.0.1.",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        rich_help_panel=EXECUTION,
        help="Worker processes of this machine.",
        show_default="one per processor; on a Mac up to 4, by its memory",
    ),
]


def flags_of(text: str) -> list[str]:
    """The flags in the value of --flags. Raises MpsmithError if a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise MpsmithError(f"--flags {text}: {str(error).lower()}") from None


def require_profile(name: str | None) -> None:
    """Raise MpsmithError if --profile names neither a known release nor a file, before torch is imported."""
    from ..audit.releases.surface.profiles import coverage_profile

    if name is not None:
        coverage_profile(name)


def require_writable(option: str, file: Path) -> None:
    """Raise MpsmithError if a file cannot be made, before the work whose result it gets. Leaves no file behind."""
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with tempfile.TemporaryFile(dir=next(folder for folder in file.absolute().parents if folder.exists())):
            return
    except OSError as error:
        raise MpsmithError(f"{option}: cannot write {file}: {error.strerror} (choose another place)") from error


def values_of(given: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Split the values of a repeatable option at commas; () if the option was not given.

    Raises MpsmithError for an empty value, such as an unset variable of a shell script: it would select everything.
    """
    if not given:
        return ()
    values = tuple(part.strip() for text in given for part in text.split(","))
    if not all(values):
        raise MpsmithError(f"{option} has an empty value; name at least one, or leave {option} out for all")
    return values
