"""What an audit under torch.compile brings into the registry, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from mpsmith.audit.compiled.verdicts import CompiledVerdict
from mpsmith.registry.compiled_sync import sync_compiled
from mpsmith.registry.files import load
from mpsmith.registry.model import CompiledWord
from mpsmith.registry.problems import RegistryError
from mpsmith.registry.sync import Measurement, sync

MODE = "aten::mode"


def eager(torch: str = "2.13.0+cpu") -> Measurement:
    return Measurement(MODE, torch, "simulated", None, {MODE: "missing"}, "missing", {"missing": ["float32"]})


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    sync(tmp_path, [eager()])
    return tmp_path


def compiled(registry: Path) -> dict[str, list[str]]:
    return {str(word): list(names) for word, names in load(registry)[MODE].measured["simulated"].compiled.items()}


class TestSyncCompiled:
    def test_a_dtype_is_written_under_its_verdict(self, registry: Path) -> None:
        report = sync_compiled(registry, "simulated", "2.13.0+cpu", None, {MODE: {"metal": ["int64", "float32"]}})
        assert (report.changed, report.unchanged, report.unmeasured) == ((MODE,), (), ())
        assert compiled(registry) == {"metal": ["float32", "int64"]}
        assert load(registry)[MODE].measured["simulated"].dtypes == {"missing": ["float32"]}
        again = sync_compiled(registry, "simulated", "2.13.0", "2.13.0", {MODE: {"metal": ["int64", "float32"]}})
        assert (again.changed, again.unchanged) == ((), (MODE,))

    def test_dtypes_that_were_not_compiled_keep_their_verdicts(self, registry: Path) -> None:
        sync_compiled(registry, "simulated", "2.13.0", None, {MODE: {"metal": ["int64", "float32"]}})
        sync_compiled(registry, "simulated", "2.13.0", None, {MODE: {"wrong": ["int64"]}})
        assert compiled(registry) == {"metal": ["float32"], "wrong": ["int64"]}

    def test_calls_as_they_are_come_first(self, registry: Path) -> None:
        results = {MODE: {"metal": ["float32"]}, "aten::new": {"metal": ["float32"]}}
        assert sync_compiled(registry, "simulated", "2.14.0", None, results).unmeasured == (MODE, "aten::new")
        assert sync_compiled(registry, "mps", "2.13.0", None, results).unmeasured == (MODE, "aten::new")
        assert compiled(registry) == {}
        assert "aten::new" not in load(registry)

    def test_rejects_unknown_verdicts(self, registry: Path) -> None:
        with pytest.raises(RegistryError, match="the compiled verdicts of aten::mode are malformed"):
            sync_compiled(registry, "simulated", "2.13.0", None, {MODE: {"lowered": ["float32"]}})
        assert compiled(registry) == {}


def test_a_sync_of_calls_as_they_are_keeps_it_for_the_same_release(registry: Path) -> None:
    sync_compiled(registry, "simulated", "2.13.0", None, {MODE: {"metal": ["float32"]}})
    assert sync(registry, [eager()]).unchanged == (MODE,)
    assert compiled(registry) == {"metal": ["float32"]}
    sync(registry, [eager("2.14.0")])
    assert compiled(registry) == {}


def test_the_registry_knows_every_verdict_of_a_call_that_was_executed() -> None:
    executed = {verdict.value for verdict in CompiledVerdict if verdict.executed}
    assert executed == set(get_args(CompiledWord))
