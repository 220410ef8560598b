from pathlib import Path

import pytest
from mpsmith.audit import release_data
from mpsmith.audit.profiles import profile, profile_of
from mpsmith.audit.release_data import OverloadHistory, ReleaseData, ReleaseFacts
from mpsmith.audit.surface import installed_surface, surface_of
from mpsmith.errors import MpsmithError


def test_softshrink_is_missing_in_2_0_1_and_native_in_2_15() -> None:
    assert "softshrink" not in profile("2.0.1").native
    assert {"softshrink", "softshrink.out", "softshrink_backward"} <= profile("2.15.0").native


def test_the_installed_torch_is_the_default() -> None:
    chosen = profile(None)
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
    chosen = profile(release)
    assert (len(chosen.native), len(chosen.sparse)) == (native, sparse)


def test_the_data_agrees_with_the_installed_torch() -> None:
    surface = installed_surface()
    try:
        committed = profile(surface.release)
    except MpsmithError:
        pytest.skip(f"no committed data for torch {surface.release}")
    computed = profile_of(surface)
    assert committed.native == computed.native
    assert committed.sparse == computed.sparse
    assert committed.always_fallback == computed.always_fallback


def test_a_profile_from_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("- func: relu(Tensor self) -> Tensor\n  dispatch: {CPU: a, MPS: b, SparseMPS: c}\n")
    chosen = profile(str(path))
    assert (chosen.native, chosen.sparse) == ({"relu"}, {"relu"})


def test_a_profile_that_was_saved(tmp_path: Path) -> None:
    chosen = profile("2.0.1")
    chosen.to_json(tmp_path / "old.json")
    assert profile(str(tmp_path / "old.json")) == chosen


def test_unknown_names_list_the_known_releases(tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match=r"no data for torch 3\.0; known releases: 1\.12\.1, .*2\.13\.0"):
        profile("3.0")
    with pytest.raises(MpsmithError, match=r"cannot read the profile .*absent\.yaml: No such file"):
        profile(str(tmp_path / "absent.yaml"))


def test_data_survives_a_round_trip_and_keeps_changes_only(tmp_path: Path) -> None:
    facts = tuple(ReleaseFacts(name, "w.whl", ("a",)) for name in ("1.0.0", "1.1.0", "1.2.0"))
    history = OverloadHistory(
        "f.out", ("absent", "missing", "structured delegate"), (False, False, True), (False, False, False)
    )
    gone = OverloadHistory("g", ("native", "absent", "absent"), (True, False, False), (False, False, False))
    data = ReleaseData(facts, {"f.out": history, "g": gone})
    release_data.save(data, tmp_path)
    assert release_data.load(tmp_path) == data
    assert (tmp_path / "overloads.tsv").read_text().splitlines()[1:] == [
        "f.out\tmissing@1.1.0 structured-delegate@1.2.0\tyes@1.2.0\t-",
        "g\tnative@1.0.0 absent@1.1.0\tyes@1.0.0 no@1.1.0\t-",
    ]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    release_data.save(ReleaseData((ReleaseFacts("1.0.0", "w.whl"),), {}), tmp_path)
    (tmp_path / "overloads.tsv").write_text("header\nf\tnative@9.9.9\t-\t-\n")
    with pytest.raises(MpsmithError, match=r"overloads\.tsv, line 2: `native@9\.9\.9` names no known release"):
        release_data.load(tmp_path)


def test_combine_joins_releases_by_name() -> None:
    old = surface_of(b"- func: f(Tensor self) -> Tensor\n  dispatch: {CPU: f}\n  autogen: f.out\n", None, "1.0.0")
    new = surface_of(b"- func: f(Tensor self) -> Tensor\n  dispatch: {CPU: f, MPS: f}\n", None, "1.1.0")
    data = release_data.combine([(ReleaseFacts("1.0.0", "a"), old), (ReleaseFacts("1.1.0", "b"), new)])
    assert data.overloads["f"].dispatch == ("missing", "native")
    assert data.overloads["f.out"].dispatch == ("composite explicit", "absent")


def test_facts_of_an_unknown_release_are_those_of_its_ancestor() -> None:
    nightly = release_data.facts_for("2.13.1.dev20260101")
    assert nightly is not None
    assert nightly.release == "2.13.0"
    assert release_data.facts_for("0.1") is None
