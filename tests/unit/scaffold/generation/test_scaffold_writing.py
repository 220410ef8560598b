"""Generated files never cost anybody their work: regions, conflicts, plans, and nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.generation import writing
from mpsmith.scaffold.generation.destination import folder_as_destination
from mpsmith.scaffold.generation.three_way import merged_three_ways
from mpsmith.scaffold.generation.writing import Action, plan, write
from mpsmith.scaffold.manifest import Manifest, manifest_above, read_manifest
from mpsmith.scaffold.targets.regions import regions_of, with_regions

GENERATED = """\
head
// mpsmith: begin body
  unwritten();
// mpsmith: end body
tail
"""
MANIFEST = Manifest("aten::mode", "extension", "sort", "2.13.0")


def test_regions_are_the_lines_between_the_marks() -> None:
    assert regions_of(GENERATED, "file") == {"body": "  unwritten();\n"}


def test_python_marks_are_regions_too() -> None:
    assert regions_of("    # mpsmith: begin a\nx\n    # mpsmith: end a\n", "file") == {"a": "x\n"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("// mpsmith: begin a\n// mpsmith: begin b\n", "file:2"),
        ("\n// mpsmith: end a\n", "file:2"),
        ("// mpsmith: begin a\n", "file"),
    ],
)
def test_damaged_marks_are_named_with_their_line(text: str, line: str) -> None:
    with pytest.raises(ScaffoldError, match=rf"^{line}: "):
        regions_of(text, "file")


def test_contents_go_into_the_regions_of_their_names() -> None:
    text, lost = with_regions(GENERATED, {"body": "  mine();\n", "gone": "x"}, "file")
    assert text == GENERATED.replace("  unwritten();", "  mine();")
    assert lost == ["gone"]


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST)
    write(again)
    assert [change.action for change in again.changes] == [Action.UNCHANGED]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_new_template_keeps_edits_in_regions(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    file = tmp_path / "a.mm"
    file.write_text(GENERATED.replace("unwritten", "mine"))
    newer = GENERATED.replace("tail", "new tail")
    planned = plan(folder_as_destination(tmp_path), {"a.mm": newer}, MANIFEST)
    assert planned.changes[0].action is Action.MERGED
    write(planned)
    assert file.read_text() == newer.replace("unwritten", "mine")


def test_an_edit_outside_the_regions_is_not_written_over(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED, "b.mm": GENERATED}, MANIFEST))
    file = tmp_path / "a.mm"
    file.write_text(GENERATED.replace("head", "my head"))
    newer = GENERATED.replace("head", "new head")
    planned = plan(folder_as_destination(tmp_path), {"a.mm": newer, "b.mm": newer}, MANIFEST)
    assert "-my head" in planned.conflicts[0].diff
    with pytest.raises(ScaffoldError, match=r"a\.mm \(--force"):
        write(planned)
    assert file.read_text() == GENERATED.replace("head", "my head")
    assert (tmp_path / "b.mm").read_text() == GENERATED


def test_force_writes_over_the_edit_and_still_keeps_the_regions(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    file = tmp_path / "a.mm"
    file.write_text(GENERATED.replace("head", "my head").replace("unwritten", "mine"))
    newer = GENERATED.replace("head", "new head")
    write(plan(folder_as_destination(tmp_path), {"a.mm": newer}, MANIFEST), force=True)
    assert file.read_text() == newer.replace("unwritten", "mine")


def test_a_region_that_no_longer_exists_is_a_conflict_when_it_holds_work(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    (tmp_path / "a.mm").write_text(GENERATED.replace("unwritten", "mine"))
    planned = plan(folder_as_destination(tmp_path), {"a.mm": GENERATED.replace("body", "other")}, MANIFEST)
    assert planned.changes[0].action is Action.CONFLICT


def test_foreign_file_is_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "a.mm").write_text("theirs\n")
    assert plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST).conflicts


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.mm").mkdir()
    with pytest.raises(ScaffoldError, match="is not a file but a file must go there; move it away"):
        plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST)


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mm").write_text(GENERATED)
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    real = writing._replace

    def refuses(path: Path, text: str) -> None:
        if path.name == "b.mm":
            raise OSError(28, "No space left on device", str(path))
        real(path, text)

    monkeypatch.setattr(writing, "_replace", refuses)
    newer = GENERATED.replace("tail", "new tail")
    with pytest.raises(ScaffoldError, match="No space left on device"):
        write(plan(folder_as_destination(tmp_path), {"a.mm": newer, "b.mm": newer}, MANIFEST))
    assert (tmp_path / "a.mm").read_text() == GENERATED
    assert not (tmp_path / "b.mm").exists()


def test_the_manifest_is_found_from_below(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"src/a.mm": GENERATED}, MANIFEST))
    manifest = manifest_above(tmp_path / "src" / "a.mm")
    assert manifest is not None
    assert manifest[0] == tmp_path.resolve()
    assert manifest[1].operator == "aten::mode"


def test_a_damaged_manifest_says_so(tmp_path: Path) -> None:
    (tmp_path / ".mpsmith.json").write_text("{")
    with pytest.raises(ScaffoldError, match="is damaged"):
        read_manifest(tmp_path / ".mpsmith.json")


# ---- three ways: what was generated, what somebody made of it, what is generated now


def test_a_line_mended_outside_the_regions_stays_and_the_newer_text_comes(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    file = tmp_path / "a.mm"
    file.write_text(GENERATED.replace("head", "my head").replace("unwritten", "mine"))
    newer = GENERATED.replace("tail", "new tail")
    planned = plan(folder_as_destination(tmp_path), {"a.mm": newer}, MANIFEST)
    assert planned.changes[0].action is Action.MERGED_LINES
    write(planned)
    assert file.read_text() == newer.replace("head", "my head").replace("unwritten", "mine")
    again = plan(folder_as_destination(tmp_path), {"a.mm": newer}, MANIFEST)
    assert again.changes[0].action is Action.UNCHANGED


def test_the_same_line_changed_on_both_sides_is_a_conflict(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    (tmp_path / "a.mm").write_text(GENERATED.replace("head", "my head"))
    planned = plan(folder_as_destination(tmp_path), {"a.mm": GENERATED.replace("head", "another head")}, MANIFEST)
    assert planned.changes[0].action is Action.CONFLICT


def test_an_unchanged_region_is_generated_again(tmp_path: Path) -> None:
    write(plan(folder_as_destination(tmp_path), {"a.mm": GENERATED}, MANIFEST))
    newer = GENERATED.replace("unwritten", "still_unwritten")
    write(plan(folder_as_destination(tmp_path), {"a.mm": newer}, MANIFEST))
    assert (tmp_path / "a.mm").read_text() == newer


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        ("a\nB\nc\nd\n", "a\nb\nc\nD\n", "a\nB\nc\nD\n"),
        ("a\nb\nc\nd\ne\n", "z\na\nb\nc\nd\n", "z\na\nb\nc\nd\ne\n"),
        ("a\nc\nd\n", "a\nb\nc\nd\n", "a\nc\nd\n"),
        ("a\nX\nc\nd\n", "a\nX\nc\nd\n", "a\nX\nc\nd\n"),
        ("a\nX\nc\nd\n", "a\nY\nc\nd\n", None),
        ("a\nX\nc\nd\n", "a\nc\nd\n", None),
    ],
)
def test_lines_of_two_sides(mine: str, theirs: str, both: str | None) -> None:
    assert merged_three_ways("a\nb\nc\nd\n", mine, theirs) == both
