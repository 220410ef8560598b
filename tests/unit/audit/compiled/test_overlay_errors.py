from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch._inductor.codegen import common

from mpsmith.audit.compiled.overlay import MODULE, Generator, overlaid

SOURCE = """
from .simd import SIMDScheduling

class MetalScheduling(SIMDScheduling):
    mark = ".generated_kernel"
"""


@pytest.fixture
def generator(tmp_path: Path) -> Generator:
    (tmp_path / "mps.py").write_text(SOURCE, "utf-8")
    return Generator("a test", tmp_path / "mps.py", tmp_path)


def test_everything_is_as_before_afterwards(generator: Generator) -> None:
    common.init_backend_registration()
    before = common.device_codegens["mps"], sys.modules[MODULE], torch.mps.compile_shader
    with overlaid(generator):
        assert common.device_codegens["mps"].scheduling.mark == ".generated_kernel"  # type: ignore[attr-defined]
        assert Path(str(sys.modules[MODULE].__file__)) == generator.module
        assert torch.mps.compile_shader is not before[2]
    assert (common.device_codegens["mps"], sys.modules[MODULE], torch.mps.compile_shader) == before
