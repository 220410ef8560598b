"""Small programs that Apple's compiler accepts, each with one thing that the simulator once refused.

The first line of a file has what its kernel `k` writes for four threads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

needs_metal_on_host()

FILES = sorted((Path(__file__).parent / "accepted").glob("*.metal"))
PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_is_accepted_and_computes(file: Path) -> None:
    source = file.read_text("utf-8")
    assert [d for d in metal.check(source, file, strict=True) if d.severity == "error"] == []
    expected = [float(word) for word in source.split("\n", 1)[0].partition("out:")[2].split()]
    assert len(expected) == 4
    out = np.full(4, -99, np.float32)
    metal.compile(source, filename=file, mode="checked").k(out, threads=4, group_size=4)
    assert out.tolist() == expected


def test_only_the_functions_that_do_not_run_are_named() -> None:
    file = next(file for file in FILES if file.stem == "textures_and_stages_beside_a_kernel")
    diagnostics = metal.check(file.read_text("utf-8"), file, strict=True)
    assert {(d.severity, d.message.partition(":")[0]) for d in diagnostics} == {
        ("warning", "vertex function 'corner'"),
        ("warning", "fragment function 'colour'"),
        ("warning", "kernel 'grey'"),
    }


def test_a_kernel_with_textures_is_refused_when_it_is_asked_for() -> None:
    file = next(file for file in FILES if file.stem == "textures_and_stages_beside_a_kernel")
    library = metal.compile(file.read_text("utf-8"), filename=file)
    with pytest.raises(metal.MetalRuntimeError, match=r"'grey' \(.*metal:\d+\) takes the textures image, out"):
        _ = library.grey
    only = metal.compile(PREAMBLE + "kernel void k(texture2d<float> t [[texture(0)]], sampler s) {}")
    with pytest.raises(metal.MetalRuntimeError, match="the textures t, s"):
        _ = only.k


def test_a_kernel_that_calls_the_library_function_of_its_name_is_not_recursive() -> None:
    source = "kernel void abs(device float* a, uint i [[thread_position_in_grid]]) { a[i] = abs(a[i]); }"
    assert metal.check(PREAMBLE + source, strict=True) == []


def test_a_misplaced_fp_pragma_is_an_error() -> None:
    source = "kernel void k(device float* a) {\n  a[0] = 1;\n#pragma clang fp contract(off)\n  a[1] = 2;\n}"
    (error,) = metal.check(PREAMBLE + source)
    assert (error.severity, error.line) == ("error", 6)
    assert "start of a block" in error.message


def test_a_fault_in_merged_code_names_a_line_of_the_source() -> None:
    source = (
        "kernel void k(device float* a, constant int& n, uint i [[thread_position_in_grid]]) {\n"
        "  if (n > 1) {\n    a[i + n] = 1;\n  } else {\n    a[i + n] = 2;\n  }\n}"
    )
    with pytest.raises(metal.MetalRuntimeError, match=r"at program_source:[3-9]\b"):
        metal.compile(PREAMBLE + source, mode="checked").k(np.zeros(4, np.float32), 100, threads=1, arg_casts="int32")


def test_a_buffer_at_program_scope_is_not_supported() -> None:
    source = "device float* constant shared [[buffer(0)]];\nkernel void k(device float* a) { a[0] = 1; }"
    first = metal.check(PREAMBLE + source)[0]
    assert (first.rule, first.line) == ("not-supported", 3)
    assert "[[buffer(n)]] at program scope: pass 'shared' to the kernel" in first.message
