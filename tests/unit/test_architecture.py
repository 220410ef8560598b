"""The pictures of docs/architecture.md show all imports."""

from support.drawings import DOCUMENT, MARKED, drawn, picture, reduced
from support.imports import arrows


def test_the_pictures_are_up_to_date() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert [marks[2] for marks in MARKED.finditer(document)] == ["package", "audit", "scaffold", "simulator"]
    assert drawn(document, arrows()) == document, "make drawings"


def test_a_new_import_changes_the_pictures() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    new = [("registry.files", 1, "reports.publish"), ("audit.model.verdicts", 1, "audit.findings.summary")]
    changed = drawn(document, [*arrows(), *new])
    assert "registry --> reports" in changed
    assert "model --> findings" in changed


def test_leaves_redundant_arrows_out() -> None:
    assert reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    circle = {"a": {"b"}, "b": {"a"}}
    assert reduced(circle) == circle


def test_a_folder_without_arrows_is_drawn() -> None:
    assert picture({"a": {"b"}, "b": set(), "c": set()}).splitlines()[2:-1] == ["    a --> b", "    c"]
