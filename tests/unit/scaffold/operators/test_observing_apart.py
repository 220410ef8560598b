"""A CPU kernel that ends its process costs what it would have shown, and neither the command nor other operators."""

from __future__ import annotations

import signal

import pytest

from mpsmith.scaffold.operators import observing_apart


def test_a_kernel_that_ends_its_process_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(observing_apart, "observed", signal.raise_signal)
        assert observing_apart._observed_apart(signal.SIGABRT) is None  # type: ignore[arg-type]
    observation = observing_apart._observed_apart("frexp.Tensor_out")
    assert observation is not None
    assert observation.results[1].element == "int32"
