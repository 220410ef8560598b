from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.registry.drift import drift_of
from mpsmith.registry.files import edit, load
from mpsmith.registry.model import Status
from mpsmith.registry.problems import RegistryError
from mpsmith.registry.rendering import measured_in_words
from mpsmith.registry.sync import Measurement, sync

HAND_WRITTEN = """\
# Operators with m.

# The most wanted of all.
aten::mode:
    status: missing   # since the beginning
    owner:   'someone'
    notes: a long text that a person
      wrapped by hand
    measured:  # by the auditor
        simulated:
            torch: 2.13.0  # the pinned one
            verdict: missing
            overloads:
                # both of them
                aten::mode: missing
                aten::mode.values: missing
            dtypes: {missing: [float32]}
    # nothing after this

aten::mul: {owner: someone}
"""


def measurement(
    operator: str,
    verdict: str = "native",
    *,
    torch: str = "2.13.0+cpu",
    device: str = "simulated",
    profile: str | None = None,
    dtypes: Mapping[str, Sequence[str]] | None = None,
    overloads: Mapping[str, str] | None = None,
    reason: str | None = None,
    shipped_kernel: Sequence[str] = (),
    host_code: Sequence[str] = (),
) -> Measurement:
    dispatch = "native" if verdict == "native" else "missing"
    word = "passed" if verdict in ("native", "composite") else verdict
    return Measurement(
        operator=operator,
        torch=torch,
        device=device,
        profile=profile or (None if device == "mps" else torch),
        overloads=overloads if overloads is not None else {operator: dispatch},
        verdict=verdict,
        dtypes=dtypes if dtypes is not None else {word: ["int64", "float32"]},
        reason=reason,
        shipped_kernel=shipped_kernel,
        host_code=host_code,
    )


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.yaml"))}


def fingerprints(folder: Path) -> dict[Path, tuple[bytes, int, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.iterdir()}


def changed_lines(before: str, after: str) -> list[str]:
    diff = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in diff if line[0] in "+-" and not line.startswith(("---", "+++"))]


def test_a_first_sync_makes_the_folder_its_files_and_entries(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "operators"
    report = sync(
        folder, [measurement("aten::mul"), measurement("aten::mode", "missing"), measurement("aten::_fft_r2c")]
    )
    assert report.added == ("aten::_fft_r2c", "aten::mode", "aten::mul")
    assert not report.changed
    assert not report.drift
    assert list(texts(folder)) == ["fft.yaml", "m.yaml"]
    head, _, body = texts(folder)["m.yaml"].partition("\n\n")
    assert head.startswith("# Operators of PyTorch")
    assert body == (
        "aten::mode: {measured: {simulated: {torch: 2.13.0, verdict: missing, overloads: {'aten::mode': missing}, "
        "dtypes: {missing: [float32, int64]}}}}\n"
        "aten::mul: {measured: {simulated: {torch: 2.13.0, verdict: native, overloads: {'aten::mul': native}, "
        "dtypes: {passed: [float32, int64]}}}}\n"
    )
    assert load(folder)["aten::mode"].current_status is Status.missing


def test_dtypes_of_shipped_kernels_are_kept_until_they_are_measured_again(tmp_path: Path) -> None:
    both = {"passed": ["int64", "float32"]}
    sync(tmp_path, [measurement("aten::mul", dtypes=both, shipped_kernel=["int64", "float32"])])
    assert ", shipped_kernel: [float32, int64]}}}\n" in texts(tmp_path)["m.yaml"]
    assert measured_in_words(load(tmp_path)["aten::mul"]).endswith("torch 2.13.0, shipped kernel")
    sync(tmp_path, [measurement("aten::mul", dtypes={"passed": ["int64"]})])
    assert load(tmp_path)["aten::mul"].measured["simulated"].shipped_kernel == ["float32"]
    report = sync(tmp_path, [measurement("aten::mul", dtypes=both)])
    assert [change.operator for change in report.changed] == ["aten::mul"]
    assert "shipped_kernel" not in texts(tmp_path)["m.yaml"]
    assert measured_in_words(load(tmp_path)["aten::mul"]).endswith("torch 2.13.0, dispatch only")


def test_dtypes_of_host_code_are_kept_until_they_are_measured_again(tmp_path: Path) -> None:
    both = {"passed": ["int64", "float32"]}
    sync(tmp_path, [measurement("aten::mul", dtypes=both, host_code=["int64", "float32"])])
    assert ", host_code: [float32, int64]}}}\n" in texts(tmp_path)["m.yaml"]
    sync(tmp_path, [measurement("aten::mul", dtypes={"passed": ["int64"]}, shipped_kernel=["int64"])])
    assert load(tmp_path)["aten::mul"].measured["simulated"].host_code == ["float32"]
    assert measured_in_words(load(tmp_path)["aten::mul"]).endswith("torch 2.13.0, host code")
    sync(tmp_path, [measurement("aten::mul", dtypes=both)])
    assert "host_code" not in texts(tmp_path)["m.yaml"]


def test_a_grade_follows_from_device_and_kernels(tmp_path: Path) -> None:
    unreachable = measurement("aten::a", "unreachable", dtypes={}, reason="no user")
    on_a_mac = measurement("aten::b", device="mps")
    sync(tmp_path, [unreachable, on_a_mac, measurement("aten::c", shipped_kernel=["float32"])])
    entries = load(tmp_path)
    graded = [
        entries[f"aten::{name}"].measured[device].grade_on(device)
        for name, device in (("a", "simulated"), ("b", "mps"), ("c", "simulated"))
    ]
    assert graded == [None, "real device", "shipped kernel"]


def test_the_same_measurements_again_touch_no_file(tmp_path: Path) -> None:
    wanted = [measurement("aten::mul"), measurement("aten::mode", "missing"), measurement("aten::add", "composite")]
    sync(tmp_path, wanted)
    before = fingerprints(tmp_path)
    report = sync(tmp_path, reversed(wanted))
    assert report.unchanged == ("aten::add", "aten::mode", "aten::mul")
    assert not report.added
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in tmp_path.iterdir()
    } == before


def test_hand_written_lines_and_comments_survive(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(HAND_WRITTEN)
    new = measurement(
        "aten::mode",
        "wrong",
        torch="2.14.0",
        overloads={"aten::mode": "native", "aten::mode.values": "missing"},
        dtypes={"wrong": ["float32"]},
    )
    report = sync(tmp_path, [new])
    assert [str(change) for change in report.changed] == ["aten::mode: missing → wrong (simulated)"]
    assert changed_lines(HAND_WRITTEN, texts(tmp_path)["m.yaml"]) == [
        "-            torch: 2.13.0  # the pinned one",
        "-            verdict: missing",
        "+            torch: 2.14.0  # the pinned one",
        "+            verdict: wrong",
        "-                aten::mode: missing",
        "+                aten::mode: native",
        "-            dtypes: {missing: [float32]}",
        "+            dtypes:",
        "+              wrong: [float32]",
    ]


def test_keeps_simulated_and_real_measurements_apart(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "wrong", device="mps")])
    report = sync(tmp_path, [measurement("aten::mode", "native")])
    assert report.added == ("aten::mode",)
    entry = load(tmp_path)["aten::mode"]
    assert {device: result.verdict for device, result in entry.measured.items()} == {
        "mps": "wrong",
        "simulated": "native",
    }
    assert entry.current_status is Status.wrong
    assert entry.measured["mps"].profile is None


def test_another_release_with_the_same_finding_changes_one_line(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "missing")])
    before = texts(tmp_path)["m.yaml"]
    report = sync(tmp_path, [measurement("aten::mode", "missing", torch="2.14.0")])
    assert report.remeasured == ("aten::mode",)
    assert not report.changed
    assert texts(tmp_path)["m.yaml"] == before.replace("torch: 2.13.0", "torch: 2.14.0")


def test_the_profile_is_written_where_it_is_not_torchs_own_release(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "missing", profile="2.0.1")])
    assert load(tmp_path)["aten::mode"].measured["simulated"].release == "2.0.1"
    sync(tmp_path, [measurement("aten::mode", "missing", profile="2.13.0+cpu")])
    assert "profile" not in texts(tmp_path)["m.yaml"]


def test_an_older_release_replaces_nothing(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "native"), measurement("aten::mul", "native", device="mps")])
    before = texts(tmp_path)
    older = [
        measurement("aten::mode", "missing", profile="2.0.1"),
        measurement("aten::mul", "missing", device="mps", torch="2.9.1"),
        measurement("aten::mul", "missing", profile="2.0.1"),
    ]
    report = sync(tmp_path, older)
    assert report.outdated == ("aten::mode", "aten::mul")
    assert report.added == ("aten::mul",)  # on the simulated device nothing newer is recorded
    assert load(tmp_path)["aten::mul"].measured["mps"].verdict == "native"
    assert texts(tmp_path)["m.yaml"].startswith(before["m.yaml"].rstrip("\n").rsplit("\n", 1)[0])


def test_dtypes_that_were_not_executed_keep_their_verdicts(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "wrong", dtypes={"passed": ["float32", "int8"], "wrong": ["int64"]})])
    sync(tmp_path, [measurement("aten::mode", "dtype gap", dtypes={"passed": ["bool"], "dtype gap": ["int8"]})])
    result = load(tmp_path)["aten::mode"].measured["simulated"]
    assert result.dtypes == {"passed": ["float32", "bool"], "wrong": ["int64"], "dtype gap": ["int8"]}
    assert result.verdict == "wrong"
    report = sync(tmp_path, [measurement("aten::mode", "native", dtypes={"passed": ["int64", "int8"]})])
    result = load(tmp_path)["aten::mode"].measured["simulated"]
    assert result.dtypes == {"passed": ["float32", "int64", "int8", "bool"]}
    assert result.verdict == "native"
    assert [str(change) for change in report.changed] == ["aten::mode: wrong → native (simulated)"]


def test_another_release_takes_nothing_over_from_the_one_before(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "wrong", dtypes={"wrong": ["int64"]})])
    sync(tmp_path, [measurement("aten::mode", "native", torch="2.14.0", dtypes={"passed": ["float32"]})])
    result = load(tmp_path)["aten::mode"].measured["simulated"]
    assert (result.verdict, result.dtypes) == ("native", {"passed": ["float32"]})


def test_an_audit_without_cases_keeps_the_evidence(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "wrong", dtypes={"wrong": ["int64"]})])
    sync(tmp_path, [measurement("aten::mode", "reference failed", dtypes={}, overloads={"aten::mode": "native"})])
    result = load(tmp_path)["aten::mode"].measured["simulated"]
    assert (result.verdict, result.dtypes, result.overloads) == (
        "wrong",
        {"wrong": ["int64"]},
        {"aten::mode": "native"},
    )


def test_a_rule_that_excludes_an_operator_overrides_earlier_results(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "wrong", dtypes={"wrong": ["int64"]})])
    sync(tmp_path, [measurement("aten::mode", "unreachable", dtypes={}, reason="for CPUs only")])
    result = load(tmp_path)["aten::mode"].measured["simulated"]
    assert (result.verdict, result.dtypes, result.reason) == ("unreachable", {}, "for CPUs only")


def test_a_verdict_of_dtypes_that_were_not_executed_this_time_keeps_its_reason(tmp_path: Path) -> None:
    whole = measurement("aten::svd", "fallback", dtypes={"fallback": ["float32"]}, reason="through aten::_svd")
    sync(tmp_path, [whole])
    sync(tmp_path, [measurement("aten::svd", "composite", dtypes={"passed": ["int64"]}, overloads=whole.overloads)])
    after = load(tmp_path)["aten::svd"].measured["simulated"]
    assert (after.verdict, after.reason) == ("fallback", "through aten::_svd")
    sync(tmp_path, [measurement("aten::svd", "composite", dtypes={"passed": ["float32"]})])
    after = load(tmp_path)["aten::svd"].measured["simulated"]
    assert (after.verdict, after.reason) == ("composite", None)


def test_the_order_of_overloads_and_dtypes_does_not_matter(tmp_path: Path) -> None:
    first = measurement(
        "aten::mode",
        "wrong",
        overloads={"aten::mode.values": "missing", "aten::mode": "native"},
        dtypes={"wrong": ["int8", "float32"], "passed": ["bool", "float16"]},
    )
    sync(tmp_path, [first])
    before = texts(tmp_path)
    other = replace(
        first,
        overloads={"aten::mode": "native", "aten::mode.values": "missing"},
        dtypes={"passed": ["float16", "bool"], "wrong": ["float32", "int8"]},
    )
    assert sync(tmp_path, [other]).unchanged == ("aten::mode",)
    assert texts(tmp_path) == before


def test_a_status_of_people_is_never_changed_and_drift_is_reported(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(HAND_WRITTEN)
    report = sync(tmp_path, [measurement("aten::mode", "native", torch="2.15.0")])
    entry = load(tmp_path)["aten::mode"]
    assert entry.status is Status.missing
    assert [drift.operator for drift in report.drift] == ["aten::mode"]
    assert str(report.drift[0]) == (
        "aten::mode: marked missing, but native now on the simulated device with the coverage of torch 2.15.0: "
        "it may be closed"
    )
    again = sync(tmp_path, [measurement("aten::mode", "native", torch="2.15.0")])
    assert again.drift == report.drift
    edit(tmp_path, "mode", {"status": None})
    assert sync(tmp_path, [measurement("aten::mode", "native", torch="2.15.0")]).drift == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (measurement("aten::mode", device="cuda"), "aten::mode was measured on 'cuda'"),
        (
            measurement("aten::mode", "fine"),
            "the measurement of aten::mode is malformed: 'fine' is not a value of verdict",
        ),
        (measurement("aten::mode", overloads={"aten::sort": "native"}), "aten::sort is not an overload of aten::mode"),
        (measurement("aten::add"), "two measurements of aten::add"),
    ],
)
def test_a_malformed_measurement_rejects_the_whole_sync(tmp_path: Path, wrong: Measurement, message: str) -> None:
    sync(tmp_path, [measurement("aten::add", "missing")])
    before = texts(tmp_path)
    with pytest.raises(RegistryError) as raised:
        sync(tmp_path, [measurement("aten::add"), wrong])
    assert message in str(raised.value)
    assert texts(tmp_path) == before


def test_an_entry_that_was_moved_to_another_file_stays_there(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text("aten::mode:\n  owner: x\n")
    sync(tmp_path, [measurement("aten::mode"), measurement("aten::mul")])
    assert load(tmp_path).place("aten::mode").path.name == "wanted.yaml"
    assert list(texts(tmp_path)) == ["m.yaml", "wanted.yaml"]


OPERATORS = st.sampled_from(["aten::add", "aten::mode", "aten::mul", "aten::_fft_r2c", "torchvision::nms"])
DTYPES = st.lists(st.sampled_from(["float32", "float16", "int64", "bool"]), unique=True, max_size=4)
VERDICTS = st.sampled_from(["native", "composite", "missing", "fallback", "wrong", "crash", "unreachable"])


@st.composite
def measurements(draw: st.DrawFn) -> list[Measurement]:
    drawn = {}
    for operator in draw(st.lists(OPERATORS, unique=True, max_size=5)):
        device = draw(st.sampled_from(["mps", "simulated"]))
        passed = draw(DTYPES)
        wrong = [dtype for dtype in draw(DTYPES) if dtype not in passed]
        overloads = draw(st.lists(st.sampled_from(["", ".out", ".values"]), unique=True, min_size=1))
        drawn[operator] = measurement(
            operator,
            draw(VERDICTS),
            torch=draw(st.sampled_from(["2.13.0", "2.9.0", "2.14.0"])),
            device=device,
            overloads={operator + overload: draw(st.sampled_from(["native", "missing"])) for overload in overloads},
            dtypes={"passed": passed, "wrong": wrong},
            reason=draw(st.sampled_from([None, "the rule: it's so", "# odd"])),
        )
    return list(drawn.values())


@settings(max_examples=40, deadline=None)
@given(rounds=st.lists(measurements(), max_size=4))
def test_any_syncs_keep_the_persons_lines_and_settle(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Measurement]]
) -> None:
    folder = tmp_path_factory.mktemp("operators")
    (folder / "m.yaml").write_text(HAND_WRITTEN)
    human = load(folder)
    for wanted in rounds:
        sync(folder, wanted)
        before = texts(folder)
        sync(folder, wanted)
        assert texts(folder) == before
    registry = load(folder)
    for operator, entry in human.items():
        assert registry[operator].model_copy(update={"measured": {}}) == entry.model_copy(update={"measured": {}})
    synced = texts(folder)["m.yaml"]
    first_lines, _, _ = HAND_WRITTEN.partition("    measured:")
    assert first_lines.split("\n\n", 1)[1] in synced
    for comment in (
        "# Operators with m.",
        "# by the auditor",
        "# the pinned one",
        "# both of them",
        "# nothing after this",
    ):
        assert comment in synced


def test_records_partly_broken_dtypes(tmp_path: Path) -> None:
    whole = measurement("aten::mode", "missing", dtypes={"missing": ["float32", "int8"]})
    sync(tmp_path, [replace(whole, partly={"wrong": ["int8", "float32"]})])
    assert "dtypes: {missing: [float32, int8]}, partly: {wrong: [float32, int8]}}" in texts(tmp_path)["m.yaml"]
    entry = load(tmp_path)["aten::mode"]
    assert (entry.current_status, entry.is_partly_broken) == (Status.missing, True)
    # A narrow audit only changes its own dtypes.
    sync(tmp_path, [measurement("aten::mode", "missing", dtypes={"missing": ["float32"]})])
    after = load(tmp_path)["aten::mode"].measured["simulated"]
    assert (after.verdict, after.partly) == ("missing", {"wrong": ["int8"]})
    sync(tmp_path, [measurement("aten::mode", "missing", dtypes={"missing": ["float32", "int8"]})])
    assert not load(tmp_path)["aten::mode"].is_partly_broken


def test_a_dtype_that_is_broken_decides_only_where_it_did_before(tmp_path: Path) -> None:
    sync(tmp_path, [measurement("aten::mode", "missing", dtypes={"missing": ["float32"], "wrong": ["bool"]})])
    sync(tmp_path, [measurement("aten::mode", "missing", dtypes={"missing": ["float32"]})])
    assert load(tmp_path)["aten::mode"].measured["simulated"].verdict == "missing"
    sync(tmp_path, [measurement("aten::mul", "wrong", dtypes={"passed": ["float32"], "wrong": ["bool"]})])
    sync(tmp_path, [measurement("aten::mul", "native", dtypes={"passed": ["float32"]})])
    assert load(tmp_path)["aten::mul"].measured["simulated"].verdict == "wrong"


@pytest.mark.parametrize(
    ("status", "drifts"),
    [(Status.native, True), (Status.composite, True), (Status.wrong, False), (Status.missing, True)],
)
def test_partly_broken_dtypes_cause_drift(tmp_path: Path, status: Status, drifts: bool) -> None:
    verdict = "composite" if status is Status.composite else "native"
    sync(tmp_path, [replace(measurement("aten::mul", verdict), partly={"wrong": ["float32"]})])
    edit(tmp_path, "aten::mul", {"status": status})
    drift = drift_of(load(tmp_path)["aten::mul"])
    assert (drift is not None) is drifts
    if drift is not None:
        assert "wrong in some cases" in drift.explanation
