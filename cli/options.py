"""The options that several commands share, and how their values are read. It imports no command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..errors import MpsmithError

DEFAULT_STORE = Path("audit.sqlite")

StorePath = Annotated[Path, typer.Option("--store", metavar="FILE", help="The results store, an SQLite file.")]

RegistryFolder = Annotated[
    Path | None,
    typer.Option(
        "--registry",
        metavar="DIR",
        envvar="MPSMITH_REGISTRY",
        help="The registry's folder, not the package's own.",
    ),
]

Release = Annotated[
    str | None,
    typer.Option("--torch", metavar="RELEASE", help="A release of torch, as 2.15.0; default: the installed one."),
]

Profile = Annotated[
    str | None,
    typer.Option(metavar="RELEASE", help="Simulated device: the coverage of this torch release, such as 2.0.1."),
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
        help="Only these operators. A name takes all overloads and forms of it, from every source; an overload such as "
        "'pow.Tensor_Tensor' its own cases, as 'aten::pow.Tensor_Tensor' also those that may reach it; a pattern such "
        "as 'linalg*' what it matches. Repeated or joined by commas.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def values_of(given: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """The values of a repeatable option, each of which may also hold several, separated by commas; () where not given.

    Raises MpsmithError where it was given without a value, as by an empty variable of a shell script: taken for "all",
    that would do the most where the least was meant.
    """
    if not given:
        return ()
    values = tuple(part.strip() for text in given for part in text.split(","))
    if not all(values):
        raise MpsmithError(f"{option} has an empty value; name at least one, or leave {option} out for all")
    return values
