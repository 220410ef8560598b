from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.audit.compiled.lowering import recorded_compilation
from mpsmith.audit.compiled.overlay import MODULE, Generator, OverlayError, overlaid
from mpsmith.simulator import metal
from support.generator_faults import installed_generator

ChangedGenerator = Callable[..., Generator]


@pytest.fixture(scope="module", autouse=True)
def everything_is_generated_anew() -> Iterator[None]:
    from torch._inductor import config

    metal.install()
    with config.patch(force_disable_caches=True):
        yield


@pytest.fixture
def changed(tmp_path: Path) -> ChangedGenerator:
    """The installed generator with some of its text replaced."""

    def change(old: str, new: str, include: Path | None = None) -> Generator:
        source = installed_generator().read_text("utf-8")
        assert old in source
        path = tmp_path / "mps.py"
        path.write_text(source.replace(old, new), "utf-8")
        return Generator("a test", path, include)

    return change


def floor_of(x: torch.Tensor) -> tuple[list[float], str]:
    """What the compiled call returns, and the Metal that was generated for it."""
    with recorded_compilation() as lowering:
        result: Any = torch.compile(torch.floor, dynamic=False)(x.to("mps"))
    return result.cpu().tolist(), lowering.source


def test_the_other_generator_writes_the_metal_and_the_installed_one_does_again_afterwards(
    changed: ChangedGenerator,
) -> None:
    before = importlib.import_module(MODULE)
    with overlaid(changed('return f"metal::floor({x})"', 'return f"metal::ceil({x})"')):
        values, source = floor_of(torch.tensor([0.5, -0.5]))
        assert "metal::ceil" in source
        assert values == [1.0, 0.0]
    assert sys.modules[MODULE] is before
    values, source = floor_of(torch.tensor([0.5, -0.5]))
    assert "metal::floor" in source
    assert values == [0.0, -1.0]


def test_its_headers_are_found_before_the_installed_ones(changed: ChangedGenerator, tmp_path: Path) -> None:
    header = tmp_path / "include" / "c10" / "metal" / "utils.h"
    header.parent.mkdir(parents=True)
    header.write_text("#include <metal_stdlib>\nnamespace c10 { inline float other(float x) { return 7; } }\n")
    with overlaid(changed('return f"metal::floor({x})"', 'return f"c10::other({x})"', tmp_path / "include")):
        values, _ = floor_of(torch.tensor([0.5]))
    assert values == [7.0]


def test_a_generator_that_answers_with_a_library_is_called_by_the_kernel_s_name(changed: ChangedGenerator) -> None:
    """As those of 2.9 to 2.11 do: here one that hands its text to the wrapper as they did."""
    source = installed_generator().read_text("utf-8")
    start = source.index("        # Python path: register kernel with async_compile")
    old = source[start:]
    new = """        name = f"mps_lib_{wrapper.next_kernel_suffix()}"
        wrapper.header.splice("from torch._inductor.runtime.runtime_utils import compile_mps_shader")
        wrapper.src_to_kernel[src_code] = name
        wrapper.define_kernel(name, src_code, "", gpu=False)
        return name
"""
    with overlaid(changed(old, new)):
        values, generated = floor_of(torch.tensor([0.5, -0.5]))
    assert values == [0.0, -1.0]
    assert "kernel void generated_kernel(" in generated


def test_a_generator_that_cannot_be_imported_says_why_and_leaves_the_installed_one(changed: ChangedGenerator) -> None:
    before = importlib.import_module(MODULE)
    generator = changed("from .simd import ", "from .simd import NoSuchThing, ")
    message = (
        "^the code generator of a test cannot be laid over the installed Inductor: cannot import name 'NoSuchThing'"
    )
    with pytest.raises(OverlayError, match=message), overlaid(generator):
        pytest.fail("it was laid over")
    assert sys.modules[MODULE] is before
    assert floor_of(torch.tensor([0.5]))[0] == [0.0]
