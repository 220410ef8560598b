"""What an audit does when its user says nothing: the same numbers on the command line as in the settings."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest

from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.cli.audit import audit
from mpsmith.simulator.opening import DeviceKind


def test_default_settings() -> None:
    settings = Settings()
    assert settings.memory_limit == 8 * 1024**3
    assert settings.timeout == 60.0
    assert settings.workers == os.cpu_count()
    assert (settings.samples, settings.seed, settings.device) == (Samples.DEFAULT, 0, DeviceKind.AUTO)
    assert not settings.large
    assert not any((settings.ops, settings.dtypes, settings.sources, settings.imports, settings.faults))
    assert settings.profile is None


@pytest.mark.parametrize(("option", "default"), [("memory_limit", 8.0), ("timeout", 60.0), ("seed", 0)])
def test_the_command_line_has_the_same_defaults(option: str, default: Any) -> None:
    assert inspect.signature(audit).parameters[option].default == default


def test_limits_and_workers_are_not_recorded_because_they_decide_no_case() -> None:
    recorded = Settings(workers=3, timeout=1.0, memory_limit=1).recorded()
    assert recorded == Settings().recorded()
    assert set(recorded) == {
        *("samples", "seed", "ops", "dtypes", "device", "profile"),
        *("sources", "imports", "large", "faults", "shipped", "shipped_samples"),
    }
    given = Settings(Samples.FULL, 3, ("mode",), ("int8",), DeviceKind.SIMULATED, "2.9.0", "2.8.0", large=True)
    assert Settings.from_recorded(given.recorded(), workers=given.workers) == given
