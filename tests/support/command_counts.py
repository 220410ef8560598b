"""How many commands and options `mpsmith` has, for the budget."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from mpsmith.cli import app


def counts() -> tuple[int, int]:
    """The numbers of commands that do something and of options but `--help`; an option counts for each command."""
    commands = options = 0
    pending: list[Any] = [get_command(app)]
    while pending:
        command = pending.pop()
        subcommands = getattr(command, "commands", {})
        commands += not subcommands or bool(getattr(command, "invoke_without_command", False))
        options += sum(
            parameter.param_type_name == "option" and "--help" not in parameter.opts for parameter in command.params
        )
        pending += subcommands.values()
    return commands, options
