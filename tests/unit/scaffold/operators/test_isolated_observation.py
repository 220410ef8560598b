"""A CPU kernel that ends its process costs what it would have shown, and neither the command nor other operators."""

from __future__ import annotations

import signal

import pytest

from mpsmith.scaffold.operators import isolated_observation


def test_a_kernel_that_ends_its_process_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(isolated_observation, "observed", signal.raise_signal)
        assert isolated_observation._observe_in_subprocess(signal.SIGABRT) is None  # type: ignore[arg-type]
    observation = isolated_observation._observe_in_subprocess("frexp.Tensor_out")
    assert observation is not None
    assert observation.results[1].element == "int32"
