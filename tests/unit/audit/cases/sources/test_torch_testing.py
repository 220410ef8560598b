"""Torch's tables of tests load without torch.compile, and what they take of it is what it has."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

from mpsmith.audit.cases.sources import torch_testing
from mpsmith.audit.cases.sources.torch_testing import without_the_compiler

COMPILER = "torch._inductor.utils"


def test_the_list_of_devices_is_that_of_the_compiler() -> None:
    from torch._inductor.utils import GPU_TYPES

    assert torch_testing._GPU_TYPES == GPU_TYPES


def test_inside_the_list_alone_is_there_and_outside_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, COMPILER, raising=False)
    with without_the_compiler():
        from torch._inductor.utils import GPU_TYPES

        assert GPU_TYPES is torch_testing._GPU_TYPES
    assert COMPILER not in sys.modules


def test_other_attributes_are_the_compilers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, COMPILER, raising=False)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(has_triton=name))
    with without_the_compiler():
        from torch._inductor.utils import has_triton

        assert has_triton == COMPILER
        assert COMPILER not in sys.modules


def test_a_compiler_that_is_loaded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace()
    monkeypatch.setitem(sys.modules, COMPILER, loaded)
    with without_the_compiler():
        assert sys.modules[COMPILER] is loaded
    assert sys.modules[COMPILER] is loaded
