"""The registry of an installed mpsmith: read among its code, written in the folder where someone works."""

from pathlib import Path

import pytest

from mpsmith.registry import folder as registry_folder_module
from mpsmith.registry import known_wrong, writing
from mpsmith.registry.files import edit, load
from mpsmith.registry.folder import registry_folder
from mpsmith.registry.kernel_index import kernel_entries
from mpsmith.registry.problems import RegistryError
from mpsmith.registry.sync import Measurement, sync

SHIPPED = """\
aten::mode:
  status: implemented
  kernel: mode
"""


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registry of a package that was installed; the current folder is an empty one beside it."""
    shipped = tmp_path / "site-packages" / "mpsmith" / "registry" / "operators"
    shipped.mkdir(parents=True)
    (shipped / "m.yaml").write_text(SHIPPED)
    monkeypatch.delenv("MPSMITH_REGISTRY", raising=False)
    monkeypatch.setattr("mpsmith.cache.PACKAGE", shipped.parents[1])
    for module in (registry_folder_module, writing):
        monkeypatch.setattr(module, "PACKAGED", shipped)
    monkeypatch.setattr("mpsmith.registry.files.PACKAGED", shipped)
    monkeypatch.setattr("mpsmith.registry.kernel_index.PACKAGED", shipped)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return shipped


def test_reading_leaves_no_copy(shipped: Path) -> None:
    assert load()["aten::mode"].kernel == "mode"
    assert list(Path().iterdir()) == []


def test_the_first_edit_copies_the_registry_here(shipped: Path) -> None:
    edit(None, "mode", {"owner": "ada"})
    edit(None, "sort", {"owner": "bob"}, add=True)
    assert [path.name for path in Path().iterdir()] == ["mpsmith-registry"]
    assert (shipped / "m.yaml").read_text() == SHIPPED
    assert [path.name for path in shipped.iterdir()] == ["m.yaml"]
    assert load()["aten::mode"].owner == "ada"
    assert load()["aten::mode"].kernel == "mode"
    assert load()["aten::sort"].owner == "bob"


def test_a_sync_writes_here(shipped: Path) -> None:
    sync(None, [Measurement("aten::mode", "2.13.0", "simulated", None, {"aten::mode": "missing"}, "missing")])
    assert (shipped / "m.yaml").read_text() == SHIPPED
    assert load()["aten::mode"].measured["simulated"].verdict == "missing"


def test_a_named_folder_is_written_in_place(shipped: Path, tmp_path: Path) -> None:
    edit(tmp_path / "own", "mode", {"owner": "ada"}, add=True)
    assert list(Path().iterdir()) == []
    assert load(tmp_path / "own")["aten::mode"].owner == "ada"


def test_kernels_are_registered_from_the_package(shipped: Path) -> None:
    edit(None, "mode", {"kernel": None, "status": "missing"})
    assert list(kernel_entries()) == ["aten::mode"]


def test_reports_of_wrong_results_are_read_from_the_package(shipped: Path) -> None:
    edit(None, "mode", {"owner": "ada"})
    assert known_wrong.corpus_folder() == known_wrong.PACKAGED


def test_a_failed_copy_has_a_next_step(shipped: Path) -> None:
    Path("mpsmith-registry").write_text("a file is in the way")
    with pytest.raises(RegistryError, match=r"cannot write the registry in mpsmith-registry: .*MPSMITH_REGISTRY"):
        edit(None, "mode", {"owner": "ada"})
    assert [path.name for path in Path().iterdir()] == ["mpsmith-registry"]


def test_a_clone_goes_on_with_its_own(shipped: Path) -> None:
    (shipped.parents[1] / "pyproject.toml").touch()
    edit(None, "mode", {"owner": "ada"})
    assert list(Path().iterdir()) == []
    assert registry_folder() == shipped
    assert "owner: ada" in (shipped / "m.yaml").read_text()
