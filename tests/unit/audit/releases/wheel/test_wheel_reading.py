"""The whole reading of a wheel: of small ones, and of real ones where a package index is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.audit.model.selection import DTYPES
from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.coverage import from_data, from_wheel
from mpsmith.audit.releases.coverage.sources import read_release
from mpsmith.audit.releases.wheel.archive import open_path
from mpsmith.audit.releases.wheel.build import WheelReading, combine, read_wheel
from mpsmith.cli import app
from support.commands import printed_json

Write = Callable[[Any], Path]


def test_facts_of_a_small_wheel(build: SimpleNamespace, wheel_file: Write) -> None:
    reading = read_wheel(open_path(wheel_file(build.Wheel(library=build.MachO().build()))))
    facts = reading.facts
    assert facts is not None
    assert facts.always_falls_back == ("embedding_renorm_", "linalg_svd")
    assert facts.refuses == ("_slow_conv2d_forward",)
    assert facts.unexplained == ()
    assert facts.registered == {"MPS": 6, "SparseMPS": 1, "SparseCsrMPS": 0, "AutocastMPS": 1}
    assert facts.metal_functions == {"metal_basic": 1}
    assert reading.metal_dtypes == {"abs": ("float32",)}
    assert reading.surface.by_name["aten::linalg_svd"].dispatch.value == "always falls back"
    assert reading.failures is None


@pytest.fixture
def with_delegate(build: SimpleNamespace, wheel_file: Write) -> WheelReading:
    """A wheel in which a structured out overload has a fallback written by hand instead of a kernel."""
    yaml = build.YAML.replace(b"MPS: sin_out_mps", b"CUDA: sin_out")
    calls = [build.Call("sin.out", build.FALLBACK, build.BOXED_CONSTRUCTOR)]
    library = build.MachO({build.generated("MPS", 1): [build.Call("abs")], build.by_hand("MPS", 2): calls}).build()
    return read_wheel(open_path(wheel_file(build.Wheel(yaml=yaml, library=library))))


def test_delegates_inherit_hand_written_registrations(with_delegate: WheelReading) -> None:
    assert with_delegate.facts is not None
    assert with_delegate.facts.inherited == {"sin": "always falls back"}


def test_committed_data_match_the_wheel(with_delegate: WheelReading) -> None:
    computed, committed = from_wheel(with_delegate), from_data(combine([with_delegate]), 0)
    assert dict(committed.by_name) == dict(computed.by_name)
    assert committed.metal_dtypes == computed.metal_dtypes


def test_a_reading_without_its_binary_makes_no_data(build: SimpleNamespace, wheel_file: Write) -> None:
    reading = read_wheel(open_path(wheel_file(build.Wheel())), with_binary=False)
    assert {row.registered for row in from_wheel(reading).overloads} == {"not read"}
    with pytest.raises(ValueError, match="needs its binary"):
        combine([reading])


def test_the_command_reads_wheels_and_folders(build: SimpleNamespace, wheel_file: Write, tmp_path: Path) -> None:
    wheel = build.Wheel(library=build.MachO().build())
    outputs = []
    for path in (wheel_file(wheel), wheel.unpack(tmp_path / "unpacked")):
        outputs.append(printed_json(app, "coverage", "--wheel", str(path))["overloads"])
    assert outputs[0] == outputs[1]


@pytest.mark.network
@pytest.mark.parametrize("release", ["1.12.1", "2.13.0", "2.15.0"])
def test_real_wheels_match_committed_data(release: str) -> None:
    """Needs a package index and about 140 MB; `pytest -m network` runs it."""
    reading = read_release(release)
    data = release_data.load()
    computed, committed = from_wheel(reading), from_data(data, data.index(release))
    assert dict(committed.by_name) == dict(computed.by_name)
    assert committed.metal_dtypes == computed.metal_dtypes
    assert committed.failures == computed.failures
    assert committed.tested == computed.tested
    assert reading.failures is None or reading.failures.problems == ()
    if release == "2.15.0":
        assert reading.failures is not None
        unimplemented = reading.failures.lists["forward", "UNIMPLEMENTED_XFAILLIST"]
        tested = {opinfo.test: opinfo.dtypes or frozenset() for opinfo in reading.opinfos}
        on_mps = set(DTYPES)
        pairs = sum(len(tested[t] & on_mps) if dtypes is None else len(dtypes) for t, dtypes in unimplemented.items())
        assert (len(unimplemented), pairs) == (75, 299)
