"""Every `--json` is an object with a version and the keys that docs/json.md names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mpsmith.cli import app
from support.json_document import KEYS, undocumented
from support.needs import needs_a_device

# What answers at once, without a device.
QUICK = [
    "next",
    "coverage --history",
    "coverage --operators",
    "registry show aten::mode",
    "registry show",
    "registry check",
    "scaffold frexp --force --dry-run",
    "kernels list",
    "evidence show",
    "doctor",
]


def with_json(command: Any, path: str = "") -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from with_json(inner, f"{path} {name}".strip())
    if any("--json" in parameter.opts for parameter in command.params):
        yield path


def test_every_command_that_prints_json_is_described() -> None:
    words = {word for command in KEYS for word in (command, command.split()[0])}
    assert [name for name in with_json(get_command(app)) if name not in words and name.split()[0] not in words] == []


@pytest.mark.parametrize("typed", QUICK)
def test_what_is_printed_has_a_version_and_the_keys_of_the_document(typed: str) -> None:
    arguments = [*typed.split(), "--json"]
    if typed.startswith("kernels"):  # it loads the device, which an earlier backward of this process would prevent
        needs_a_device()
        command = [sys.executable, "-m", "mpsmith", *arguments]
        printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    else:
        printed = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert undocumented(typed, printed) == set()
