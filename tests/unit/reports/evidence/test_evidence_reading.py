"""A file of evidence may come from anybody: what is none is refused, with the reason, before it costs anything."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpsmith.reports.evidence import reading
from mpsmith.reports.evidence.errors import EvidenceError
from mpsmith.reports.evidence.reading import LARGEST_FILE, read
from support.evidence_files import evidence, evidence_data, written


def compressed(folder: Path, text: bytes) -> Path:
    path = folder / "evidence.json.gz"
    path.write_bytes(gzip.compress(text, mtime=0))
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    first = evidence({"aten::mode": {"float32": {"wrong": 2}}})
    assert read(written(tmp_path, first)) == first


def test_the_same_evidence_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (written(tmp_path, evidence(), name) for name in ("a.json.gz", "b.json.gz"))
    assert one.read_bytes() == other.read_bytes()


def test_a_bomb_is_not_inflated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compressed(tmp_path, b" " * 2**26)
    assert path.stat().st_size < LARGEST_FILE
    monkeypatch.setattr(reading, "parsed", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(EvidenceError, match="inflates to more than 32 MB"):
        read(path)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"audit":{"overloads":{"aten::mode":'])
def test_deep_nesting_is_refused(tmp_path: Path, opening: bytes) -> None:
    with pytest.raises(EvidenceError, match="recursion limit"):
        read(compressed(tmp_path, opening * 800_000))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b"{}"), "not compressed"),
        (lambda path: path.write_bytes(b""), "not compressed"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "ends in the middle"),
        (lambda path: path.write_bytes(path.read_bytes()[:60] + b"\0" * 40 + path.read_bytes()[100:]), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes() * 2), "more than one compressed part"),
        (lambda path: path.write_bytes(b"\x1f\x8b" + b"\0" * LARGEST_FILE), "larger than 300 KB"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: Callable[[Path], object], reason: str) -> None:
    path = written(tmp_path, evidence())
    damage(path)
    with pytest.raises(EvidenceError, match=reason) as refused:
        read(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="not a file"):
        read(tmp_path)


def changed(data: dict[str, Any], *keys: str, value: object) -> dict[str, Any]:
    target = data
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    return data


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        (("version",), 2, "another version than 1"),
        (("format",), "zip", "not a file of evidence"),
        (("colour",), "red", "colour: Extra inputs"),
        (("machine", "serial"), "C02", "machine.serial: Extra inputs"),
        (("machine", "variables"), {"HOME": "x"}, "machine.variables"),
        (("machine", "gpu_cores"), -1, "gpu_cores"),
        (("audit", "executed"), -3, "executed"),
        (("audit", "executed"), 10**30, "executed"),
        (("audit", "overloads"), {"../../etc": {"dtypes": {}}}, "overloads"),
        (("audit", "failing"), {"opinfo:mode:float32": [{"verdict": "wrong", "positions": []}]}, "positions"),
        (("audit", "failing"), {"opinfo:mode:float32\n": []}, "failing"),
        (("collected",), "yesterday", "collected"),
        (("collected",), "2026-01-01T00:00:00", "timezone"),
        (("kernels",), [{"family": "mode"}], "kernels.0"),
        (("simulated",), None, "simulated"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(
    tmp_path: Path, keys: tuple[str, ...], value: object, reason: str
) -> None:
    text = json.dumps(changed(evidence_data(), *keys, value=value)).encode()
    with pytest.raises(EvidenceError, match=reason):
        read(compressed(tmp_path, text))


def test_times_are_numbers(tmp_path: Path) -> None:
    timing = '{"operator": "aten::mode", "elements": 3, "cpu": NaN}'
    row = '{"family": "mode", "simulated": false, "source": "0123456789abcdef", "timing": TIMING}'.replace(
        "TIMING", timing
    )
    text = json.dumps(evidence_data()).replace('"kernels": []', f'"kernels": [{row}]').encode()
    with pytest.raises(EvidenceError, match="cpu"):
        read(compressed(tmp_path, text))


def test_rows_that_are_alike_are_one_object_in_all_files(tmp_path: Path) -> None:
    usual = {"aten::mode": {"float32": {"wrong": 2}}, "aten::sort": {"float32": {"passed": 1}}}
    other = usual | {"aten::sort": {"float32": {"passed": 2}}}
    first, second = (
        read(written(tmp_path, evidence(each), name)) for each, name in ((usual, "a.json.gz"), (other, "b.json.gz"))
    )
    assert first.audit.overloads["aten::mode"] is second.audit.overloads["aten::mode"]
    assert [each.audit.overloads["aten::sort"].cases.total() for each in (first, second)] == [1, 2]
    (group,) = first.audit.failing
    assert first.audit.failing[group][0] is second.audit.failing[group][0]
    assert (first, second) == (evidence(usual), evidence(other))


def test_garbage_is_collected_again_after_a_refused_file(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError):
        read(compressed(tmp_path, b"{"))
    assert gc.isenabled()


TWO = {"aten::mode": {"float32": {"passed": 2}}, "aten::sort.stable": {"float32": {"wrong": 2}, "int64": {"passed": 1}}}


def parsed_in_full(text: bytes, monkeypatch: pytest.MonkeyPatch) -> object:
    """What comes of it where no row is known by its text."""
    with monkeypatch.context() as patched:
        patched.setattr(reading, "_LONGEST_ROW", 0)
        try:
            return reading.parsed(text)
        except EvidenceError:
            return None


@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
def test_rows_that_are_known_by_their_text_are_those_that_are_parsed(
    monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str]
) -> None:
    data = evidence_data(TWO)
    for alike in data["audit"]["failing"].values():
        alike[0]["message"] = (
            'says "aten::mode": {"dtypes": {"x": {"cases": {"wrong": 2}}}}, {{}} and \\"aten::mode\\":{'
        )
    text = json.dumps(data, separators=separators).encode()
    assert len(reading._without_rows(text)[2]) == len(TWO)
    assert reading.parsed(text) == parsed_in_full(text, monkeypatch)


ROW = '{"dispatch":"native","dtypes":{"float32":{"verdict":"native","cases":{"passed":2}}}}'


@pytest.mark.parametrize(
    "damaged",
    [
        lambda text: text.replace(ROW, ROW[:-1]),
        lambda text: text.replace(ROW, ROW + ROW),
        lambda text: text.replace(ROW, ROW + ',"aten::mode":' + ROW.replace("2", "3")),
        lambda text: text.replace(ROW, "3"),
        lambda text: text.replace('"audit":', f'"aten::mode":{ROW},"audit":'),
        lambda text: text.replace('"float32":', f'"aten::mode":{ROW},"float32":', 1),
        lambda text: text.replace('"python":"3.12.4"', f'"python":"aten::mode":{ROW}'),
        lambda text: text.replace('"Apple M3 Pro"', ROW).replace('"chip"', '"aten::chip"'),
    ],
)
def test_a_row_in_another_place_is_refused_as_ever(
    monkeypatch: pytest.MonkeyPatch, damaged: Callable[[str], str]
) -> None:
    whole = json.dumps(evidence_data(TWO), separators=(",", ":"))
    text = damaged(whole)
    assert text != whole
    expected = parsed_in_full(text.encode(), monkeypatch)
    if expected is None:
        with pytest.raises(EvidenceError):
            reading.parsed(text.encode())
    else:
        assert reading.parsed(text.encode()) == expected
