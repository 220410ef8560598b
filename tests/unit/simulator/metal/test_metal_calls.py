"""The calling convention of `torch.mps.compile_shader`: what arguments become, and which errors there are."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mpsmith.metal_limits import MAX_BUFFER_BYTES
from mpsmith.simulator import metal
from mpsmith.simulator.metal.binding import Buffer, bind, inline
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void copy_bytes(device uchar* out, constant uchar* in, uint i [[thread_position_in_grid]]) { out[i] = in[i]; }
kernel void fill(device float* out, constant float& value, uint i [[thread_position_in_grid]]) { out[i] = value; }
kernel void sizes(device uint* out, uint2 n [[threads_per_grid]], uint2 t [[threads_per_threadgroup]],
    uint2 p [[thread_position_in_grid]]) {
  if (p.x + p.y == 0) { out[0] = n.x; out[1] = n.y; out[2] = t.x; out[3] = t.y; } }
struct Lists { device float* lists[2]; };
kernel void sum_lists(device float* out, constant Lists& in, uint i [[thread_position_in_grid]]) {
  out[i] = in.lists[0][i] + in.lists[1][i]; }
kernel void with_lines(device int* out) {
  out[0] = 1;
}
"""


@pytest.fixture(scope="module")
def library() -> metal.ShaderLibrary:
    return metal.compile(SOURCE)


def as_bytes(library: metal.ShaderLibrary, argument: Any, count: int, **options: Any) -> bytes:
    out = np.zeros(count, np.uint8)
    library.copy_bytes(out, argument, threads=count, **options)
    return out.tobytes()


@pytest.mark.parametrize(
    ("argument", "cast", "expected"),
    [
        (3, None, np.int64(3)),
        (-1, None, np.int64(-1)),
        (True, None, np.int64(1)),
        (2.5, None, np.float32(2.5)),
        (1e300, None, np.float32(np.inf)),
        ([1, 2, 3], None, np.array([1, 2, 3], np.int64)),
        ((1.5, 2.5), None, np.array([1.5, 2.5], np.float32)),
        ([1.5, 2], None, np.array([1.5, 2], np.float32)),
        (3, "int32", np.int32(3)),
        (-2, "int16", np.int16(-2)),
        (300, "uint8", np.uint8(44)),
        (-5, "int8", np.int8(-5)),
        (1.1, "fp16", np.float16(1.1)),
        (1e6, "fp16", np.float16(np.inf)),
        (7, "fp16", np.float16(7)),
        ([1, 2], "int32", np.array([1, 2], np.int32)),
        ([1.5, 2.5], "fp16", np.array([1.5, 2.5], np.float16)),
    ],
)
def test_numbers_and_lists(library: metal.ShaderLibrary, argument: Any, cast: str | None, expected: Any) -> None:
    actual = as_bytes(library, argument, expected.nbytes, arg_casts=cast)
    assert actual == expected.tobytes()


@pytest.mark.parametrize("value", [1.0, 1.00390625, 3.3895314e38, -0.1, float("nan"), 1e-40])
def test_bfloat_cast_rounds_as_torch(library: metal.ShaderLibrary, value: float) -> None:
    expected = torch.tensor([value], dtype=torch.bfloat16).view(torch.uint8).numpy().tobytes()
    assert as_bytes(library, value, 2, arg_casts="bf16") == expected


def test_casts_by_index(library: metal.ShaderLibrary) -> None:
    assert as_bytes(library, 5, 4, arg_casts={1: "int32"}) == np.int32(5).tobytes()
    assert as_bytes(library, 5, 8, arg_casts={7: "int32"}) == np.int64(5).tobytes()


def test_tensor_is_its_storage_from_its_offset_on(library: metal.ShaderLibrary) -> None:
    x = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
    assert as_bytes(library, x[1:].t(), 8) == bytes(range(4, 12))  # strides are not passed


def test_list_of_tensors_is_a_list_of_addresses(library: metal.ShaderLibrary) -> None:
    a, b, out = torch.arange(4.0), torch.ones(4), torch.empty(4)
    library.sum_lists(out, [a, b])
    assert torch.equal(out, a + b)


def test_threads_default_to_the_first_tensor(library: metal.ShaderLibrary) -> None:
    out = torch.zeros(5)
    library.fill(out, 2.0)
    assert out.tolist() == [2.0] * 5
    with pytest.raises(RuntimeError, match="Number of threads is undefined"):
        library.fill(2.0, 2.0)


@pytest.mark.parametrize(
    ("threads", "group", "expected"),
    [
        ((40, 3), None, [40, 3, 40, 1]),  # the default is 1024 threads in x; the group is cut off at the grid's edge
        ((40, 3), (8, 2), [40, 3, 8, 2]),
        ((40, 1), [64, 1], [40, 1, 40, 1]),
    ],
)
def test_group_sizes(library: metal.ShaderLibrary, threads: Any, group: Any, expected: list[int]) -> None:
    out = torch.zeros(4, dtype=torch.int32)
    library.sizes(out, threads=threads, group_size=group)
    assert out.tolist() == expected


def test_a_tensor_of_a_trace_is_refused_by_name(library: metal.ShaderLibrary) -> None:
    with FakeTensorMode():
        traced = torch.zeros(4)
    with pytest.raises(RuntimeError, match=r"argument 0 is a FakeTensor without memory: launch the kernel in an oper"):
        library.fill(traced, 1.0)


def test_an_empty_grid_is_refused_as_by_metal(library: metal.ShaderLibrary) -> None:
    with pytest.raises(RuntimeError, match=r"'fill'.*no threads: Metal's API validation .* refuses an empty grid"):
        library.fill(torch.zeros(0), 1.0)
    with pytest.raises(RuntimeError, match="no threads"):
        library.fill(torch.zeros(4), 1.0, threads=(4, 0), group_size=(4, 1))


def test_an_empty_grid_is_noted_by_try(
    library: metal.ShaderLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSMITH_METAL_FINDINGS", str(tmp_path / "findings"))
    library.fill(torch.zeros(0), 1.0)
    assert re.fullmatch(r".*kernel 'fill'.*no threads.*\n", (tmp_path / "findings").read_text())


def test_a_constant_buffer_begins_at_a_multiple_of_four_bytes() -> None:
    source = (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device half* out, constant half* in, uint i [[thread_position_in_grid]]) { out[i] = in[i]; }"
    )
    library = metal.compile(source, mode="checked")
    x = torch.arange(8, dtype=torch.float16)
    out = torch.zeros(9, dtype=torch.float16)
    with pytest.raises(
        RuntimeError, match=r"argument 1 \('in'\) starts at byte 2 .* constant buffer is a multiple of 4"
    ):
        library.k(out, x[1:], threads=4)
    library.k(out[1:], x[2:], threads=4)  # device memory needs the alignment of its elements
    assert out[1:5].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((None, 1.0), {}, RuntimeError, "argument 0 is None"),
        (("text", 1.0), {}, RuntimeError, "argument 0 is a str"),
        (([], 1.0), {}, RuntimeError, "Empty list"),
        ((["a"], 1.0), {}, RuntimeError, "Unexpected argument types"),
        (([1, 2.5], 1.0), {}, RuntimeError, "must hold ints alone"),
        ((0, 1.0), {"arg_casts": "fp8", "threads": 1}, RuntimeError, "Unsupported cast instruction fp8"),
        ((0, 1.0), {"arg_casts": 3, "threads": 1}, RuntimeError, "arg_casts must be"),
        ((2**63, 1.0), {"threads": 1}, RuntimeError, "does not fit into int64"),
        (([0] * 513, 1.0), {"threads": 1}, RuntimeError, "at most 4096 bytes by value"),
        ((torch.zeros(4),), {}, RuntimeError, r"argument 1 \('value'\) is not passed"),
        ((torch.zeros(4), 1.0), {"group_size": 1025}, ValueError, "Threadgroup size exceeds 1024 limit"),
        ((torch.zeros(4), 1.0), {"threads": (4, 4), "group_size": (64, 32)}, ValueError, "exceeds 1024"),
        ((torch.zeros(4), 1.0), {"group_size": 0}, ValueError, "at least 1"),
        ((torch.zeros(4), 1.0), {"threads": -1}, ValueError, "whole numbers"),
        ((torch.zeros(4), 1.0), {"threads": 2.5}, ValueError, "whole numbers"),
        ((torch.zeros(4), 1.0), {"group_size": "many"}, ValueError, "whole numbers"),
        ((torch.zeros(4), 1.0), {"threads": (4,), "group_size": (2, 2)}, RuntimeError, "same number of dimensions"),
        ((torch.zeros(4), 1.0), {"threads": (1, 1, 1, 1)}, RuntimeError, "wrong dimension"),
        ((torch.zeros(4), *[1.0] * 31), {}, RuntimeError, "Metal has 31 buffers"),
        ((torch.zeros(4, device="meta"), 1.0), {}, RuntimeError, "argument 0 is on meta"),
        ((torch.eye(2).to_sparse(), 1.0), {"threads": 1}, RuntimeError, "strided tensors"),
    ],
)
def test_wrong_calls(
    library: metal.ShaderLibrary, arguments: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        library.fill(*arguments, **options)


def test_unknown_kernel_is_an_error_at_the_attribute(library: metal.ShaderLibrary) -> None:
    with pytest.raises(RuntimeError, match="Failed to create function state object for: nothing"):
        _ = library.nothing
    with pytest.raises(AttributeError):
        _ = library.__deepcopy__


def test_properties_and_names(library: metal.ShaderLibrary) -> None:
    kernel = library.fill
    assert kernel.max_threads_per_threadgroup == 1024
    assert kernel.thread_execution_width == 32
    assert kernel.static_thread_group_memory_length == 0
    assert dir(library) == sorted(dir(library))
    assert "fill" in dir(library)
    assert "simulated" in repr(library)
    assert "simulated" in repr(kernel)


def test_syntax_error_has_the_place_in_the_metal_source() -> None:
    source = SOURCE.replace("out[0] = 1;", "out[0] = one;")
    line = source.split("\n").index("  out[0] = one;") + 1
    with pytest.raises(SyntaxError, match=rf"program_source:{line}:12: error: .*'one'") as caught:
        metal.compile(source)
    assert caught.value.lineno == line
    assert caught.value.filename == "program_source"


def test_syntax_error_behind_an_include_keeps_its_line(tmp_path: Any) -> None:
    (tmp_path / "extra.h").write_text("inline float twice(float x) {\n  return x + y;\n}\n")
    main = tmp_path / "main.metal"
    with pytest.raises(SyntaxError, match=r"extra.h:2:14: error"):
        metal.compile('#include <metal_stdlib>\n#include "extra.h"\nkernel void k(device float* a) {}\n', filename=main)
    (tmp_path / "extra.h").write_text("inline float twice(float x) {\n  return x + x;\n}\n")
    with pytest.raises(SyntaxError, match=r"main.metal:3:"):
        metal.compile(
            '#include <metal_stdlib>\n#include "extra.h"\nkernel void k(device float* a) { b; }\n', filename=main
        )


def test_missing_include_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError, match=r"program_source:1:.*'no/such/header.h' file not found"):
        metal.compile("#include <no/such/header.h>\n")


def test_lists_are_aligned_for_every_vector() -> None:
    library = metal.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device long4* out, constant long4& v, uint i [[thread_position_in_grid]]) {"
        " out[i] = v * (i + 1); }"
    )
    for rows in (3, 1 << 14):  # guarded, and on the memory itself
        out = torch.zeros(rows, 4, dtype=torch.int64)
        library.k(out, [1, 2, 3, 4], threads=rows)
        assert out[2].tolist() == [3, 6, 9, 12]


def test_no_buffer_is_larger_than_those_of_the_smallest_mac(library: metal.ShaderLibrary) -> None:
    out = torch.zeros(4)
    large = Buffer(out.data_ptr(), out.data_ptr(), MAX_BUFFER_BYTES + 1, out)
    with (
        metal.checking("checked"),
        pytest.raises(RuntimeError, match=r"argument 0 \('out'\) has 4294967297 bytes: a Mac"),
    ):
        library.fill.launch((4, 1, 1), (4, 1, 1), {0: large, 1: inline(bytes(4), 1)})


def test_misaligned_vectors_are_an_error() -> None:
    library = metal.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device float4* out, uint i [[thread_position_in_grid]]) { out[i] = out[i] + float4(1); }"
    )
    with pytest.raises(RuntimeError, match=r"argument 0 \('out'\) starts at byte 4 .* aligned to 16 bytes"):
        library.k(torch.zeros(33)[1:], threads=8)


def test_overlapping_arguments_share_memory(library: metal.ShaderLibrary) -> None:
    x = torch.arange(8, dtype=torch.uint8)
    library.copy_bytes(x[:4], x[4:], threads=4)
    assert x.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]


def test_errors_reported_by_the_kernel() -> None:
    library = metal.compile(
        """#include <metal_stdlib>
#include <c10/metal/common.h>
#include <c10/metal/error.h>
using namespace metal;
kernel void k(device int* a, constant int* index, device c10::metal::ErrorMessages* errors,
    uint i [[thread_position_in_grid]]) {
  if (index[i] > 3) { TORCH_REPORT_ERROR(errors, "index ", index[i], " is out of range"); return; }
  a[i] = index[i];
}"""
    )
    out = torch.zeros(4, dtype=torch.int32)
    library.k(out, torch.tensor([0, 1, 2, 3], dtype=torch.int32), error_buf_idx=2)
    with pytest.raises(RuntimeError, match=r"index 12 is out of range \(program_source:7 in k\)"):
        library.k(out, torch.tensor([0, 12, 2, 3], dtype=torch.int32), error_buf_idx=2)


def test_0_dimensional_cpu_tensor_is_a_number_on_the_device() -> None:
    bound = bind(torch.tensor(2.5, dtype=torch.float64), 1, None, "mps", tight=False)
    assert bound.available == 4  # double does not exist there: torch narrows it
    # As torch has it, a view passes what its storage begins with; what torch narrows is a separate tensor.
    steps = torch.tensor([7.0, 8.0, 9.0])
    for view, passed in ((steps[2], 7.0), (steps.double()[2], 9.0)):
        assert ctypes.c_float.from_address(bind(view, 1, None, "mps", tight=False).address).value == passed
    with pytest.raises(RuntimeError, match="Passed CPU tensor to MPS op"):
        bind(torch.zeros(3), 1, None, "mps", tight=False)


def test_large_calls_run_on_the_memory_itself(library: metal.ShaderLibrary) -> None:
    out = torch.zeros(1 << 20)
    library.fill(out, 3.0)
    assert (out == 3).all()


def test_threads_of_python_may_call_at_once(library: metal.ShaderLibrary) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def fill(value: int) -> bool:
        out = torch.zeros(1000)
        library.fill(out, float(value))
        return bool((out == value).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fill, range(100)))
