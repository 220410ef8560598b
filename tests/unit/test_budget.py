"""The project stays within the budget in pyproject.toml. A change that needs more raises it in a separate commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import budget
from support.command_counts import counts


@pytest.fixture(scope="module")
def used() -> dict[str, budget.Usage]:
    return budget.usage()


@pytest.mark.parametrize("limit", ["source-lines", "test-lines", "module-lines", "parameters", "banned-words"])
def test_the_code_is_within_its_budget(limit: str, used: dict[str, budget.Usage]) -> None:
    assert used[limit].used <= budget.budget()[limit], used[limit].largest


def test_commands_and_options_are_within_their_budget() -> None:
    commands, options = counts()
    limits = budget.budget()
    assert 0 < commands <= limits["commands"]
    assert 0 < options <= limits["options"]


def test_every_limit_is_checked(used: dict[str, budget.Usage]) -> None:
    assert set(budget.budget()) == {*used, "commands", "options"}


def test_lines_and_parameters_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module.py").write_text("class A:\n    def f(self, a, /, b, *rest, c=1, **more):\n        pass\n")
    monkeypatch.setattr(budget, "ROOT", tmp_path)
    assert budget.lines_in(Path("module.py")) == 3
    assert list(budget.functions(Path("module.py"))) == [("module.py:2 f", 3)]


def test_files_above_a_limit_are_named() -> None:
    assert budget.largest_usage({"a": 3, "b": 9, "c": 5}, 4) == budget.Usage(9, ("b: 9", "c: 5"))
