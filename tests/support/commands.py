"""Commands as a user types them, in this process."""

from __future__ import annotations

from typing import Any

import typer
from typer.testing import CliRunner, Result

from mpsmith.errors import MpsmithError
from support.json_document import documented


def typed(app: typer.Typer, *arguments: str) -> Result:
    """What became of a command, whatever that is."""
    return CliRunner().invoke(app, list(arguments))


def output(app: typer.Typer, *arguments: str) -> str:
    """What a command prints that succeeds."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def printed_json(app: typer.Typer, *arguments: str) -> Any:
    """What a command prints with --json, which docs/json.md describes."""
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    group = () if app.info.name == "mpsmith" else (app.info.name,)
    return documented(" ".join((*group, *arguments)), result.stdout)


def refusal(app: typer.Typer, *arguments: str) -> str:
    """The error that a command ends with, which a user can mend."""
    result = typed(app, *arguments)
    assert isinstance(result.exception, MpsmithError), result.output
    assert result.exit_code != 0
    return str(result.exception)
