"""Every committed evidence file passes the checks again and has the name that adding gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpsmith.registry.folder import PACKAGED
from mpsmith.reports.evidence.checking import checked
from mpsmith.reports.evidence.files import FOLDER, EvidenceError, evidence_files, file_name
from support.evidence_files import evidence, written


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with the files of a folder of evidence."""
    allowed = {*evidence_files(folder), folder / "README.md"}
    yield from (f"{path.name} is not evidence" for path in sorted(folder.iterdir()) if path not in allowed)
    for path in evidence_files(folder):
        try:
            name = file_name(checked(path), path.read_bytes())
        except EvidenceError as error:
            yield str(error)
            continue
        if name != path.name:
            yield f"{path.name} is not what `mpsmith evidence add` calls it: {name}"


def test_committed_evidence_can_be_true_and_has_the_name_that_adding_gives() -> None:
    assert list(faults(PACKAGED.parent / FOLDER)) == []


def test_detects_files_that_should_not_be_committed(tmp_path: Path) -> None:
    written(tmp_path, evidence(chip="x86_64"), "a.json.gz")
    written(tmp_path, evidence(), "b.json.gz")
    (tmp_path / "note.txt").touch()
    stranger, refused, misnamed = faults(tmp_path)
    assert stranger == "note.txt is not evidence"
    assert "not one of Apple's" in refused
    assert misnamed.startswith("b.json.gz is not what `mpsmith evidence add` calls it: apple-m3-pro_macos-15.5")
