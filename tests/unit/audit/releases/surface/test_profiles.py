from pathlib import Path

import pytest

from mpsmith.audit.releases.surface import installed_surface
from mpsmith.audit.releases.surface.profiles import coverage_profile, profile_of
from mpsmith.errors import MpsmithError


def test_the_installed_torch_is_the_default() -> None:
    chosen = coverage_profile(None)
    surface = installed_surface()
    assert surface.release.startswith(chosen.release)
    assert len(chosen.native) == surface.summary().native
    assert "embedding_renorm_" in chosen.always_fallback
    assert chosen.always_fallback.isdisjoint(chosen.native)


@pytest.mark.parametrize(
    ("release", "native", "sparse"),
    [("1.12.1", 456, 0), ("2.13.0", 890, 160), ("2.13.0+cpu", 890, 160), ("2.15", 928, 161)],
)
def test_committed_releases(release: str, native: int, sparse: int) -> None:
    chosen = coverage_profile(release)
    assert (len(chosen.native), len(chosen.sparse)) == (native, sparse)


def test_the_data_agrees_with_the_installed_torch() -> None:
    surface = installed_surface()
    try:
        committed = coverage_profile(surface.release)
    except MpsmithError:
        pytest.skip(f"no committed data for torch {surface.release}")
    computed = profile_of(surface)
    assert committed.native == computed.native
    assert committed.sparse == computed.sparse
    assert committed.always_fallback == computed.always_fallback


def test_a_profile_from_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("- func: relu(Tensor self) -> Tensor\n  dispatch: {CPU: a, MPS: b, SparseMPS: c}\n")
    chosen = coverage_profile(str(path))
    assert (chosen.native, chosen.sparse) == ({"relu"}, {"relu"})


def test_a_profile_that_was_saved(tmp_path: Path) -> None:
    chosen = coverage_profile("2.0.1")
    chosen.to_json(tmp_path / "old.json")
    assert coverage_profile(str(tmp_path / "old.json")) == chosen


def test_unknown_names_list_the_known_releases(tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match=r"no data for torch 3\.0; known releases: 1\.12\.1, .*2\.13\.0"):
        coverage_profile("3.0")
    with pytest.raises(MpsmithError, match=r"cannot read the profile .*absent\.yaml: No such file"):
        coverage_profile(str(tmp_path / "absent.yaml"))


def test_hand_written_registrations_are_part_of_a_profile() -> None:
    old = coverage_profile("2.0.1")
    assert "bitwise_and.Tensor_out" in old.native
    assert {"im2col", "upsample_nearest3d.vec"} <= old.always_fallback
    assert coverage_profile("2.15.0").always_fallback == {"embedding_renorm_"}
