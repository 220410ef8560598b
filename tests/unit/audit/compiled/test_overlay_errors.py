from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from torch._inductor.codegen import common

from mpsmith.audit.compiled import overlay
from mpsmith.audit.compiled.overlay import MODULE, Generator, lay_over, overlaid

SOURCE = """
from .simd import SIMDScheduling

class MetalScheduling(SIMDScheduling):
    mark = ".generated_kernel"
"""


@pytest.fixture
def generator(tmp_path: Path) -> Generator:
    (tmp_path / "mps.py").write_text(SOURCE, "utf-8")
    return Generator("a test", tmp_path / "mps.py", tmp_path)


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ExitStack() as stack:
        monkeypatch.setattr(overlay, "_for_good", stack)
        yield


def test_everything_is_as_before_afterwards(generator: Generator) -> None:
    common.init_backend_registration()
    before = common.device_codegens["mps"], sys.modules[MODULE], torch.mps.compile_shader
    with overlaid(generator):
        assert common.device_codegens["mps"].scheduling.mark == ".generated_kernel"  # type: ignore[attr-defined]
        assert Path(str(sys.modules[MODULE].__file__)) == generator.module
        assert torch.mps.compile_shader is not before[2]
    assert (common.device_codegens["mps"], sys.modules[MODULE], torch.mps.compile_shader) == before


def test_permanent_overlay_outlives_its_context(generator: Generator, undone: None) -> None:
    lay_over(generator)
    gc.collect()
    assert Path(str(sys.modules[MODULE].__file__)) == generator.module
    assert common.device_codegens["mps"].scheduling.mark == ".generated_kernel"  # type: ignore[attr-defined]
