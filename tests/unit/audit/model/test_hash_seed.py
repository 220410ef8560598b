"""Processes that make cases see sets of strings in the same order."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mpsmith.audit.model.hash_seed import VARIABLE, same_hashes


def order_elsewhere() -> str:
    """The order of a set of eight strings in a new process: by chance the same once in 40,320 times."""
    code = "print(*{'ij', 'xy', 'mean', 'sum', 'none', 'reflect', 'constant', 'circular'})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("given", [None, "1", "2"])
def test_processes_hash_alike_under_any_hash_seed(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with same_hashes():
        agreed = order_elsewhere()
    if given is not None:
        monkeypatch.setenv(VARIABLE, given)
    with same_hashes():
        assert order_elsewhere() == agreed


@pytest.mark.parametrize("given", [None, "7"])
def test_the_variable_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if given is not None:
        monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(KeyError), same_hashes():
        raise KeyError

    assert os.environ.get(VARIABLE) == given
