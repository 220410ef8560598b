"""Evidence files: bounded when they are read, because anybody may have made them, and when they are written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpsmith.reports.evidence import files
from mpsmith.reports.evidence.checking import problems_of
from mpsmith.reports.evidence.files import LARGEST_FILE, EvidenceError, packed, read
from support.evidence_files import NOW, evidence, evidence_data, written


def compressed(folder: Path, text: bytes) -> Path:
    path = folder / "evidence.json.gz"
    path.write_bytes(gzip.compress(text, mtime=0))
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    first = evidence({"aten::mode": {"float32": {"wrong": 2}}})
    assert read(written(tmp_path, first)) == first


def test_the_same_evidence_gives_the_same_bytes(tmp_path: Path) -> None:
    first, other = (written(tmp_path, evidence(), name) for name in ("a.json.gz", "b.json.gz"))
    assert first.read_bytes() == other.read_bytes()


def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    path = compressed(tmp_path, b" " * 2**26)
    assert path.stat().st_size < LARGEST_FILE
    with pytest.raises(EvidenceError, match="inflates to more than 32 MB"):
        read(path)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"audit":{"overloads":{"aten::mode":'])
def test_rejects_deep_nesting(tmp_path: Path, opening: bytes) -> None:
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
def test_rejects_a_damaged_file(tmp_path: Path, damage: Callable[[Path], object], reason: str) -> None:
    path = written(tmp_path, evidence())
    damage(path)
    with pytest.raises(EvidenceError, match=reason) as refused:
        read(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_rejects_a_folder(tmp_path: Path) -> None:
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
        (("machine", "torch"), "2.13.0</td><script>", "machine.torch"),
        (("audit", "executed"), 10**30, "executed"),
        (("audit", "overloads"), {"../../etc": {"dtypes": {}}}, "overloads"),
        (("audit", "failing"), {"opinfo:mode:float32": [{"verdict": "wrong", "positions": []}]}, "positions"),
        (("audit", "failing"), {"opinfo:mode:float32\n": []}, "failing"),
        (("collected",), "2026-01-01T00:00:00", "timezone"),
        (("simulated",), None, "simulated"),
    ],
)
def test_files_that_do_not_match_the_schema_are_errors(
    tmp_path: Path, keys: tuple[str, ...], value: object, reason: str
) -> None:
    text = json.dumps(changed(evidence_data(), *keys, value=value)).encode()
    with pytest.raises(EvidenceError, match=reason):
        read(compressed(tmp_path, text))


def test_rejects_a_time_that_is_not_a_number(tmp_path: Path) -> None:
    timing = '{"operator": "aten::mode", "elements": 3, "cpu": NaN}'
    row = '{"family": "mode", "simulated": false, "source": "0123456789abcdef", "timing": TIMING}'.replace(
        "TIMING", timing
    )
    text = json.dumps(evidence_data()).replace('"kernels": []', f'"kernels": [{row}]').encode()
    with pytest.raises(EvidenceError, match="cpu"):
        read(compressed(tmp_path, text))


MANY = {f"aten::op{number}": {"float32": {"wrong": 9}, "int64": {"fallback": 9}} for number in range(60)}


@pytest.mark.parametrize(("step", "left_out"), [(1, 0), (2, 720), (3, 1080)])
def test_a_large_file_lists_fewer_cases_and_counts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, left_out: int
) -> None:
    whole = evidence(MANY)
    reduced = files._reduced(whole, *files._REDUCTIONS[step - 1])
    monkeypatch.setattr(files, "LARGEST_FILE", len(packed(reduced)))
    small = read(written(tmp_path, whole))
    assert sum(small.audit.left_out.values()) == left_out
    assert small.audit.overloads == whole.audit.overloads
    assert problems_of(small, NOW) == []


def test_rejects_evidence_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 0)
    with pytest.raises(EvidenceError, match="--ops"):
        packed(evidence(MANY))


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "evidence.json.gz").mkdir()
    with pytest.raises(OSError, match="evidence"):
        written(tmp_path, evidence())
    assert [path.name for path in tmp_path.iterdir()] == ["evidence.json.gz"]
