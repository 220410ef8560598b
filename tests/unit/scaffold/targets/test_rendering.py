"""Rendered templates have no needless blanks, whatever the statements of jinja2 leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from mpsmith.scaffold.targets import rendering


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(rendering, "TEMPLATES", tmp_path)
    rendering._environment.cache_clear()
    yield tmp_path
    rendering._environment.cache_clear()


@pytest.mark.parametrize(("name", "blanks"), [("a.py.j2", 2), ("a.mm.j2", 1)])
def test_python_has_two_empty_lines_and_other_code_one(templates: Path, name: str, blanks: int) -> None:
    (templates / name).write_text("first\n\n\n\n\n\nsecond\n\n\n")
    assert rendering.render(name) == "first\n" + "\n" * blanks + "second\n"


def test_statements_leave_neither_blanks_nor_lines(templates: Path) -> None:
    (templates / "a.mm.j2").write_text(
        "{% for n in [1, 2] %}\n  {% if n %}\nline {{ n }}\n  {% endif %}\n{% endfor %}\nend\n"
    )
    assert rendering.render("a.mm.j2") == "line 1\nline 2\nend\n"
    (templates / "b.mm.j2").write_text("  {% if true %}x{% endif %}\n")
    assert rendering.render("b.mm.j2") == "x\n"


def test_a_value_that_is_not_given_is_an_error(templates: Path) -> None:
    (templates / "a.mm.j2").write_text("{{ name }}\n")
    with pytest.raises(jinja2.UndefinedError, match="name"):
        rendering.render("a.mm.j2")


def test_source_code_is_not_escaped(templates: Path) -> None:
    (templates / "a.mm.j2").write_text("{{ text }}\n")
    assert rendering.render("a.mm.j2", text="a < b && c") == "a < b && c\n"
