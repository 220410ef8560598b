"""Every command of mpsmith that a document or an issue's form shows can be typed: it is there, with these options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mpsmith.cli import app

ROOT = Path(__file__).parents[3]
# The changelog names what is gone.
DOCUMENTS = [
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob(".github/**/*.md"),
    *ROOT.glob(".github/**/*.yml"),
]
IN_CODE = re.compile(r"`mpsmith ([^`\n]+)`|^ {4}mpsmith ([^\n]+)", re.MULTILINE)
# In code of a message, f-strings included, and of a page.
IN_MESSAGES = re.compile(r"(?:`|<code>)mpsmith ([a-z][^`<\n\"]*)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MPSMITH = get_command(app)


def commands_in(text: str) -> list[str]:
    """What follows `mpsmith` in code within a line, and in lines that are indented or fenced."""
    programs = "\n".join(re.sub("^", "    ", block, flags=re.MULTILINE) for block in FENCED.findall(text))
    return [inline or line for inline, line in IN_CODE.findall(FENCED.sub("", text) + programs)]


def mistakes(typed: str) -> list[str]:
    """The words after `mpsmith` that are neither a command nor one of its options."""
    command: Any = MPSMITH
    words = typed.partition("#")[0].partition(" |")[0].split()
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        named = command.commands.get(words[0])
        if named is None:
            return [words[0]] if words[0].islower() else []
        command, words = named, words[1:]
    if command.name == "trace":
        return []  # the options behind a program are the program's
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    asked_for = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [option for option in asked_for if option not in {*options, "--help"}]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_in_documents_exist(document: Path) -> None:
    wrong = {typed: problems for typed in commands_in(document.read_text("utf-8")) if (problems := mistakes(typed))}
    assert wrong == {}


def test_commands_in_messages_and_templates_exist() -> None:
    files = [*ROOT.glob("*/**/*.py"), *ROOT.glob("*/**/*.j2"), *ROOT.glob("reports/templates/*.js")]
    sources = [path for path in files if path.relative_to(ROOT).parts[0] not in (".venv", "build", "tests")]
    named = [(path, typed) for path in sources for typed in IN_MESSAGES.findall(path.read_text("utf-8"))]
    named = [(path, typed.replace("{option}", "")) for path, typed in named]
    assert len(named) > 100
    assert {(path.name, typed): problems for path, typed in named if (problems := mistakes(typed))} == {}


def test_detects_missing_commands() -> None:
    assert mistakes("audit --replay 7 --script") == ["--replay", "--script"]
    assert mistakes("gone --json") == ["gone"]
    assert mistakes("registry forget mode") == ["forget"]
    assert mistakes("registry set aten::NAME status=missing") == []
    text = "mpsmith finds. `mpsmith next` and\n    mpsmith check PATH\n\n```\nmpsmith doctor\n```\n"
    assert commands_in(text) == ["next", "check PATH", "doctor"]
