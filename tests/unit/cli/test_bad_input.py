"""Bad input of every command: one line that says what to do, never a traceback, and no work that takes minutes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from mpsmith.cache import cache_folder
from mpsmith.cli import app
from mpsmith.cli.ending import written
from mpsmith.errors import MpsmithError
from mpsmith.simulator.metal.command_line import parse_argument
from support.needs import needs_simulated_device

# What takes long, by module: reaching it means that the input was accepted.
WORK = [
    ("mpsmith.audit.running.runner", "run_audit"),
    ("mpsmith.audit.running.cluster", "audit_on_cluster"),
    ("mpsmith.audit.self_test.whole_run", "self_test"),
    ("mpsmith.tracing.supervision", "run"),
    ("mpsmith.scaffold.checkout.trying", "try_checkout"),
    ("mpsmith.scaffold.generation.generate", "apply"),
    ("mpsmith.simulator.opening", "open_device"),
    ("subprocess", "Popen"),
    ("subprocess", "run"),
]
# Their work begins at once, whatever the options: a download, a build, a Mac.
NOT_ASKED = {"preflight", "upstream build", "evidence collect", "networks", "doctor"}


class BeganError(MpsmithError):
    """The work of a command began."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its words."""
    pending: list[tuple[str, Any]] = [("", get_command(app))]
    while pending:
        path, command = pending.pop()
        inner = getattr(command, "commands", {})
        if not inner:
            yield path.strip(), command
        pending += [(f"{path} {name}", sub) for name, sub in inner.items()]


COMMANDS = dict(commands())
ODD_TEXT = st.sampled_from(
    ["", " ", "nosuch", "aten::", "x" * 5000, "..", "/nonexistent/x", "/proc/x", "é☃", "-1", "%s", "a,b,,c", "*", "["]
)
ODD_NUMBERS = st.sampled_from(
    ["0", "-1", "1e400", "nan", "inf", "-inf", "9" * 30, "9" * 5000, "0x10", "1.5", "one", ""]
)


@st.composite
def command_lines(draw: st.DrawFn, name: str) -> list[str]:
    """A command with arguments and options of which many are odd."""
    words = name.split()
    for parameter in COMMANDS[name].params:
        values = ODD_NUMBERS if parameter.bare_type in (int, float) else ODD_TEXT
        if parameter.param_type_name == "argument":
            if parameter.required or draw(st.booleans()):
                words.append(draw(values))
        elif parameter.name != "help" and draw(st.integers(0, 3)) == 0:
            option = parameter.opts[0]
            words += [option] if getattr(parameter, "is_flag", False) else [option, draw(values)]
    return words


@pytest.fixture(scope="module", autouse=True)
def no_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace what takes long, and keep what is written in folders of the test."""

    def began(*arguments: object, **named: object) -> None:
        raise BeganError("work began")

    with pytest.MonkeyPatch.context() as patch:
        for module, name in WORK:
            patch.setattr(importlib.import_module(module), name, began)
        patch.chdir(tmp_path_factory.mktemp("here"))
        patch.setenv("MPSMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - NOT_ASKED))
def test_no_input_ends_in_a_traceback(name: str) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(command_lines(name))
    def check(words: list[str]) -> None:
        result = CliRunner().invoke(app, words)
        if not isinstance(result.exception, (type(None), SystemExit, MpsmithError)):
            raise AssertionError(f"mpsmith {words}") from result.exception

    check()


def test_a_store_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    for words in (["report", "--store", str(pipe)], ["compare", str(tmp_path), str(pipe)]):
        result = CliRunner().invoke(app, words)
        assert isinstance(result.exception, MpsmithError)
        assert "not a file" in str(result.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "--ops", "sofshrink"], "did you mean softshrink"),
        (["audit", "--ops", "nosuch*"], "no operator"),
        (["trace", "--allow", "nosuchop", "x.py"], "no operator"),
        (["trace", "--profile", "banana", "x.py"], "no data for torch banana"),
        (["report", "--site", "/proc/x"], "--site: cannot write /proc/x"),
        (["report", "--pages", "/proc/x"], "--pages: cannot write /proc/x"),
        (["evidence", "collect", "--out", "/proc/x"], "--out: cannot write /proc/x"),
        (["evidence", "collect", "--work", "/proc/x"], "--work: cannot write /proc/x"),
        (["evidence", "collect", "--out", "/proc"], "it is a folder"),
        (["shipped", "wrong", "--script", "/proc/x"], "--script: cannot write /proc/x"),
        (["scaffold", "mode", "--force", "--out", "/proc/x"], "--out: cannot write /proc/x"),
        (["report", "--pages", ""], "--pages has an empty value"),
        (["evidence", "collect", "--work="], "--work has an empty value"),
        (["why", "--json", ""], "the name is empty"),  # a flag has no value
        (["scaffold", ""], "the name is empty"),
        (["audit", "--import", "no_such_package"], "--import no_such_package: ModuleNotFoundError"),
        (["audit", "--import", "../x"], "--import ../x: ModuleNotFoundError"),
    ],
)
def test_bad_input_is_refused_before_any_work(words: list[str], message: str) -> None:
    check_refused_before_any_work(words, message)


def test_an_unknown_profile_is_refused_before_any_work() -> None:
    needs_simulated_device()  # a Mac takes no profile
    check_refused_before_any_work(["audit", "--profile", "banana"], "no data for torch banana")


@pytest.mark.parametrize(
    "words",
    [["audit", "--ops", "mode", "--report"], ["audit", "--ops", "mode", "--sync"], ["kernels", "verify", "--record"]],
)
def test_results_that_cannot_be_written_are_refused_before_any_work(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path / "reports"))
    check_refused_before_any_work(words, f"{words[-1]}: cannot write")


def test_an_error_in_the_cache_names_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.touch()
    monkeypatch.setenv("MPSMITH_CACHE", str(cache))
    with pytest.raises(MpsmithError, match=r"Not a directory \(MPSMITH_CACHE is "), written():
        (cache_folder() / "self-test").mkdir(parents=True)


def test_an_unknown_class_of_faults_is_refused_before_any_work() -> None:
    needs_simulated_device()
    check_refused_before_any_work(["self-test", "--classes", "banana"], "no class of faults has 'banana'")


def check_refused_before_any_work(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, MpsmithError)
    assert not isinstance(result.exception, BeganError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--timeout", "inf"],
        ["audit", "--timeout", "nan"],
        ["audit", "--cluster", "banana"],
        ["self-test", "--faults", "1000000000000"],
    ],
)
def test_values_out_of_range_are_refused(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2


@pytest.mark.parametrize("text", ["float[1,,2]", "float[1 2]", f"float[{'9' * 5000}]"])
def test_a_shape_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(MpsmithError, match="give a number, an array such as"):
        parse_argument(text)
