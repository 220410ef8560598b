from pathlib import Path

import pytest

from mpsmith.audit.releases import change_points
from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.data import FailureKey, OverloadHistory, ReleaseData, ReleaseFacts
from mpsmith.audit.releases.surface import Dispatch, surface_of
from mpsmith.audit.releases.wheel.build import combine_surfaces
from mpsmith.errors import MpsmithError

RELEASES = ("1.0.0", "1.1.0", "1.2.0")


@pytest.mark.parametrize(
    ("states", "text"),
    [(("no", "no", "no"), "-"), (("a", "a", "a"), "a@1.0.0"), (("no", "b b", "no"), "b-b@1.1.0 no@1.2.0")],
)
def test_only_changes_are_written(states: tuple[str, ...], text: str) -> None:
    assert change_points.encode(states, RELEASES, "no") == text
    assert change_points.decode(text, RELEASES, "no") == tuple(state.replace(" ", "-") for state in states)


def test_data_survives_a_round_trip(tmp_path: Path) -> None:
    facts = tuple(ReleaseFacts(name, "w.whl", "11.0", "14.5", {"MPS": 3}, ("a",)) for name in RELEASES)
    history = OverloadHistory(
        "f.out",
        ("absent", "missing", "structured delegate"),
        (False, False, True),
        (False, False, False),
        ("-", "mkldnn", "-"),
    )
    gone = OverloadHistory("g", ("native", "absent", "absent"), (True, False, False), (False, False, False), ("-",) * 3)
    data = ReleaseData(
        facts,
        {"f.out": history, "g": gone},
        {"f": ("-", "float32", "float32,float16")},
        {FailureKey("nn.functional.f", "x", "unimplemented", "f"): ("all", "int8", "-")},
        {"f": (False, True, True)},
    )
    release_data.save(data, tmp_path)
    assert release_data.load(tmp_path) == data
    assert (tmp_path / "overloads.tsv").read_text().splitlines()[1:] == [
        "f.out\tmissing@1.1.0 structured-delegate@1.2.0\tyes@1.2.0\t-\tmkldnn@1.1.0 -@1.2.0",
        "g\tnative@1.0.0 absent@1.1.0\tyes@1.0.0 no@1.1.0\t-\t-",
    ]
    assert "f\tfloat32@1.1.0 float32,float16@1.2.0" in (tmp_path / "metal_dtypes.tsv").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f\tnative@9.9.9\t-\t-\t-", r"overloads\.tsv, line 2: `native@9\.9\.9` names no known release"),
        ("f\tnative\t-\t-\t-", r"overloads\.tsv, line 2: `native` names no known release"),
        ("f\t-", r"overloads\.tsv, line 2: "),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    release_data.save(ReleaseData((ReleaseFacts("1.0.0", "w.whl"),), {}), tmp_path)
    (tmp_path / "overloads.tsv").write_text(f"header\n{line}\n")
    with pytest.raises(MpsmithError, match=message):
        release_data.load(tmp_path)


def test_histories_join_releases_by_name() -> None:
    old = surface_of(b"- func: f(Tensor self) -> Tensor\n  dispatch: {CPU: f}\n  autogen: f.out\n", None, "1.0.0")
    new = surface_of(b"- func: f(Tensor self) -> Tensor\n  dispatch: {CPU: f, MPS: f}\n", None, "1.1.0")
    histories = combine_surfaces([old, new])
    assert histories["f"].dispatch == ("missing", "native")
    assert histories["f.out"].dispatch == ("composite explicit", "absent")


def test_facts_of_an_unknown_release_are_those_of_its_ancestor() -> None:
    nightly = release_data.facts_for("2.13.1.dev20260101")
    assert nightly is not None
    assert nightly.release == "2.13.0"
    assert release_data.facts_for("0.1") is None


def test_committed_data_is_complete_and_explained() -> None:
    data = release_data.load()
    states = {dispatch.value for dispatch in Dispatch} | {release_data.ABSENT}
    assert len(data.releases) == 18
    assert all(not facts.unexplained for facts in data.releases)
    assert {state for history in data.overloads.values() for state in history.dispatch} <= states


@pytest.mark.parametrize(
    ("release", "registered", "metal"),
    [
        ("2.13.0", 894, {"metal_basic": 12998, "metal_40": 12998}),
        ("2.15.0", 930, {"metal_basic": 18563, "metal_40": 19455}),
    ],
)
def test_committed_figures_of_the_binaries(release: str, registered: int, metal: dict[str, int]) -> None:
    facts = release_data.facts_for(release)
    assert facts is not None
    assert facts.registered["MPS"] == registered
    assert facts.metal_functions == metal


@pytest.mark.parametrize("release", ["1.13.1", "2.0.1", "2.13.0", "2.15.0"])
def test_yaml_and_binary_add_up(release: str) -> None:
    data = release_data.load()
    position = data.index(release)
    facts = data.releases[position]
    kernels = {dispatch.value for dispatch in Dispatch if dispatch.has_kernel}
    declared = sum(history.dispatch[position] in kernels for history in data.overloads.values())
    by_hand = len(facts.always_falls_back) + len(facts.refuses) + len(facts.hand_written)
    assert facts.registered["MPS"] == declared + by_hand
