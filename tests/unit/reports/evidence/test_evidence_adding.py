"""Taking evidence in: what a real device showed reaches the registry, what is simulated does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.kernels.verification.evidence import source_digest
from mpsmith.registry.files import edit, load
from mpsmith.registry.model import Status
from mpsmith.reports.evidence.adding import add
from mpsmith.reports.evidence.files import EvidenceError
from support.evidence_files import evidence, kernel_row, written

MODE = {"aten::mode": {"float32": {"fallback": 3}}}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    folder = tmp_path / "registry"
    folder.mkdir()
    edit(folder, "aten::sort", {"owner": "ada"}, add=True)
    return folder


def texts(registry: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in registry.glob("*.yaml")}


def test_evidence_of_a_real_device_reaches_the_registry(tmp_path: Path, registry: Path) -> None:
    source = source_digest("mode")
    file = written(tmp_path, evidence(MODE, kernels=[kernel_row("mode", "aten::mode", source=source)]))
    added = add([file], registry)
    assert added.files[0].path.parent == registry / "evidence"
    assert added.files[0].path.name.startswith("apple-m3-pro_macos-15.5_torch-2.13.0_2026-01-02_")
    assert added.files[0].path.read_bytes() == file.read_bytes()
    entry = load(registry)["aten::mode"]
    assert (entry.measured["mps"].verdict, entry.measured["mps"].torch) == ("fallback", "2.13.0")
    assert entry.status is Status.verified
    assert entry.evidence["mps"].source == source
    assert added.verified == ("aten::mode",)
    assert load(registry)["aten::sort"].owner == "ada"


def test_the_same_file_again_changes_nothing(tmp_path: Path, registry: Path) -> None:
    file = written(tmp_path, evidence(MODE))
    assert add([file], registry).files[0].new
    before = texts(registry)
    again = add([file], registry)
    assert not again.files[0].new
    assert texts(registry) == before
    assert len(list((registry / "evidence").iterdir())) == 1


def test_simulated_evidence_is_kept_and_changes_nothing(tmp_path: Path, registry: Path) -> None:
    before = texts(registry)
    row = kernel_row("mode", "aten::mode", source=source_digest("mode"), simulated=True)
    added = add([written(tmp_path, evidence(MODE, simulated=True, kernels=[row]))], registry)
    assert added.files[0].path.name.startswith("simulated_")
    assert texts(registry) == before
    assert (added.verified, added.synced) == ((), None)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (kernel_row("mode", "aten::mode"), "other sources"),
        (kernel_row("nowhere", "aten::mode"), "no such kernels"),
        (kernel_row("mode", "aten::add", source=source_digest("mode")), "no kernel of aten::add"),
    ],
)
def test_kernels_that_are_not_those_here_are_not_verified(
    tmp_path: Path, registry: Path, row: dict[str, object], why: str
) -> None:
    added = add([written(tmp_path, evidence(MODE, kernels=[row]))], registry)
    assert added.verified == ()
    assert why in added.not_verified[str(row["family"])]
    assert {entry.status for entry in load(registry).values()} == {None}


@pytest.mark.parametrize("fields", [{"failed": 1}, {"ended": "signal 6"}, {"cases": 0, "operators": []}])
def test_kernels_that_failed_are_not_verified(tmp_path: Path, registry: Path, fields: dict[str, object]) -> None:
    row = kernel_row("mode", "aten::mode", source=source_digest("mode")) | fields
    added = add([written(tmp_path, evidence(MODE, kernels=[row]))], registry)
    assert (added.verified, added.not_verified) == ((), {})


def test_a_new_registry_can_begin_with_evidence(tmp_path: Path) -> None:
    add([written(tmp_path, evidence(MODE))], tmp_path / "new")
    assert list(load(tmp_path / "new")) == ["aten::mode"]


def test_many_files_are_taken_in_as_one_by_one(tmp_path: Path, registry: Path) -> None:
    source = source_digest("mode")
    older = evidence(MODE, kernels=[kernel_row("mode", "aten::mode", source=source)], torch="2.12.0")
    newer = evidence(
        {"aten::mode": {"float32": {"wrong": 1}}, "aten::sort": {"float32": {"passed": 1}}},
        kernels=[kernel_row("mode", "aten::mode", source=source)],
        collected="2026-03-01T00:00:00+00:00",
    )
    files = [written(tmp_path, data, f"{n}.json.gz") for n, data in enumerate((newer, older, evidence(simulated=True)))]
    other = tmp_path / "other"
    for file in reversed(files):
        add([file], other)
    added = add(files, registry)
    assert [(file.new, file.simulated) for file in added.files] == [(True, False), (True, False), (True, True)]
    one_by_one, together = load(other), load(registry)
    assert together["aten::mode"] == one_by_one["aten::mode"]
    assert together["aten::mode"].measured["mps"].verdict == "wrong"
    assert together["aten::mode"].evidence["mps"].torch == "2.13.0"
    assert together["aten::sort"].measured == one_by_one["aten::sort"].measured


def test_one_rejected_file_rejects_all(tmp_path: Path, registry: Path) -> None:
    before = texts(registry)
    files = [written(tmp_path, evidence(MODE)), written(tmp_path, evidence(MODE, chip="x86_64"), "b.json.gz")]
    with pytest.raises(EvidenceError, match=r"b\.json\.gz: refused"):
        add(files, registry)
    assert texts(registry) == before
    assert not (registry / "evidence").exists()
