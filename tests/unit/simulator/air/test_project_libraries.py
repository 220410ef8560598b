"""What the Metal libraries of projects have and those of torch do not: copies of a SIMD group, function constants."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch

from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.air.library_check import check_library
from mpsmith.simulator.errors import AirError, KernelFault
from mpsmith.simulator.metal.function_constants import constants_of
from mpsmith.simulator.metal.modes import checking
from support.air_kernels import air_library, buffer, builtin, elementwise, kernel
from support.metal_libraries import MACOS
from support.needs import needs_metal_on_host

needs_metal_on_host()

COPY = """declare ptr @air.simdgroup_async_copy_2d.p1i8.p1i8(i64, i64, ptr addrspace(1), i64, i64, <2 x i64>,
  ptr addrspace(1), i64, i64, <2 x i64>, <2 x i64>, i32)
declare void @air.wait_simdgroup_events(i32, ptr)"""


def copied(folder: Path, rows: int, width: int, height: int, offset: tuple[int, int], clamp: int) -> torch.Tensor:
    """A tile of 4 x 4 out of `width` x `height` of a matrix with rows of 5 numbers."""
    body = f"""  %events = alloca ptr
  %event = call ptr @air.simdgroup_async_copy_2d.p1i8.p1i8(i64 4, i64 4, ptr addrspace(1) %out, i64 4, i64 1,
    <2 x i64> <i64 4, i64 4>, ptr addrspace(1) %a, i64 5, i64 1, <2 x i64> <i64 {width}, i64 {height}>,
    <2 x i64> <i64 {offset[0]}, i64 {offset[1]}>, i32 {clamp})
  store ptr %event, ptr %events
  call void @air.wait_simdgroup_events(i32 1, ptr %events)"""
    text = kernel(
        "tile",
        "ptr addrspace(1) %out, ptr addrspace(1) %a, i32 %t",
        [buffer("out", "float", 0), buffer("a", "float", 1), builtin("thread_position_in_grid")],
        body,
        declarations=COPY,
    )
    out = torch.full((4, 4), -1.0)
    values = torch.arange(1.0, rows * 5 + 1).reshape(rows, 5)
    air_library(folder, {"tile": text}).kernel("tile").launch({"out": out, "a": values}, [32], [32])
    return out


@pytest.mark.parametrize("mode", ["fast", "checked"])
def test_a_copy_of_a_simd_group_has_zeros_outside_of_its_source(tmp_path: Path, mode: str) -> None:
    with checking(mode):
        matrix = copied(tmp_path, 3, 3, 2, (0, 0), 0)
    expected = torch.zeros(4, 4)
    expected[:2, :3] = torch.tensor([[1.0, 2, 3], [6, 7, 8]])
    assert torch.equal(matrix, expected)


def test_a_copy_of_a_simd_group_can_repeat_the_edge(tmp_path: Path) -> None:
    matrix = copied(tmp_path, 3, 3, 2, (1, -1), 1)
    row = [2.0, 3, 3, 3]
    assert matrix.tolist() == [row, row, [7.0, 8, 8, 8], [7.0, 8, 8, 8]]


def test_a_copy_out_of_bounds_is_found(tmp_path: Path) -> None:
    with checking("checked"), pytest.raises(KernelFault, match=r"out of bounds load .*\('a'\)"):
        copied(tmp_path, 2, 3, 4, (0, 0), 0)


CONSTANTS = """
@scale = internal addrspace(2) externally_initialized constant float undef, section "air.fc_initializer", align 4
@shift = internal addrspace(2) externally_initialized constant i32 undef, section "air.fc_initializer", align 4
@sign = internal addrspace(2) externally_initialized constant i8 undef, section "air.fc_initializer", align 1
@negative = internal addrspace(2) global i8 0, align 1
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @start, ptr null }]
declare i1 @air.is_function_constant_defined(ptr addrspace(2))
declare i8 @air.normalize_function_constant_predicate.i8(i8)
define internal void @start() section "air.static_init" {
  %asked = call i1 @air.is_function_constant_defined(ptr addrspace(2) @sign) #7
  %value = load i8, ptr addrspace(2) @sign
  %truth = call i8 @air.normalize_function_constant_predicate.i8(i8 %value)
  %kept = select i1 %asked, i8 %truth, i8 0
  store i8 %kept, ptr addrspace(2) @negative
  ret void
}
attributes #7 = { nounwind }"""
SCALED = """  %scale = load float, ptr addrspace(2) @scale
  %shift = load i32, ptr addrspace(2) @shift
  %added = sitofp i32 %shift to float
  %sum = fadd float %scale, %added
  %opposite = fneg float %sum
  %flag = load i8, ptr addrspace(2) @negative
  %wanted = icmp ne i8 %flag, 0
  %result = select i1 %wanted, float %opposite, float %sum
  store float %result, ptr addrspace(1) %out"""
ROWS = """!air.function_constants = !{!100, !101, !102}
!100 = !{ptr addrspace(2) @scale, !"float", !"scale", i32 3, i1 true}
!101 = !{ptr addrspace(2) @shift, !"int", !"shift", i32 4, i1 true}
!102 = !{ptr addrspace(2) @sign, !"bool", !"sign", i32 5, i1 false}
!103 = !{ptr addrspace(2) @sign}
"""


def constant_library(folder: Path) -> AirLibrary:
    only_if = buffer("mask", "float", 1).replace('!"air.buffer"', '!"air.function_constant", !103, !"air.buffer"')
    text = kernel(
        "value",
        "ptr addrspace(1) %out, ptr addrspace(1) %mask",
        [buffer("out", "float", 0), only_if],
        SCALED,
        declarations=CONSTANTS,
        metadata=ROWS,
    )
    return air_library(folder, {"value": text})


@pytest.mark.parametrize("mode", ["fast", "checked"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({3: 0.1, 4: 7}, torch.tensor(0.1) + 7),
        ({3: 1.5, "shift": -2, 5: True}, torch.tensor(0.5)),
        ({"scale": 2.0, 4: 0, "sign": False}, torch.tensor(2.0)),
    ],
)
def test_function_constants_have_their_values(
    tmp_path: Path, given: dict[int | str, bool | int | float], expected: torch.Tensor, mode: str
) -> None:
    library = constant_library(tmp_path)
    out, mask = torch.zeros(1), torch.zeros(1)
    with checking(mode):
        library.specialized(constants_of(given)).kernel("value").launch({"out": out, "mask": mask}, [1], [1])
    assert out[0] == expected


def test_a_function_constant_without_a_value_is_named(tmp_path: Path) -> None:
    library = constant_library(tmp_path)
    with pytest.raises(AirError, match=r"function constant 'shift' \(index 4\)"):
        library.specialized(constants_of({3: 1.0})).kernel("value").compile()


def found_in(path: Path) -> list[tuple[str, str]]:
    return [(finding.severity, finding.message) for finding in check_library(path)]


def test_a_library_is_checked_without_running_it(tmp_path: Path) -> None:
    refused = elementwise("odd", "air.tensor_thing", "float", "float")
    supported = elementwise("fine", "air.exp", "float", "float")
    path = air_library(tmp_path, {"fine": supported}).path
    assert found_in(path) == []
    path = air_library(tmp_path, {"fine": supported, "odd": refused}).path
    said = "the simulator does not support 1 of its 2 functions, such as odd: it needs air.tensor_thing"
    assert found_in(path) == [("warning", said)]
    path = air_library(tmp_path, {"odd": refused}).path
    assert found_in(path) == [("error", said.replace("of its 2", "of its 1"))]


def test_a_file_with_a_damaged_library_is_named(tmp_path: Path) -> None:
    path = air_library(tmp_path, {"fine": elementwise("fine", "air.exp", "float", "float")}).path
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    assert found_in(path) == [("error", f"the Metal library claims to have {len(whole)} bytes, but has 200")]
    path.write_bytes(b"")
    assert found_in(path) == [("error", f"cannot read the Metal library {path}: it is empty")]
    path.write_text("hello")
    assert found_in(path)[0][1].startswith("not a Metal library")
    path.write_bytes(whole[:-8] + bytes(8))
    assert found_in(path) == [("error", "the bitcode of fine does not match its hash")]
    path.write_bytes(whole.replace(MACOS.to_bytes(2, "little"), (1).to_bytes(2, "little")))
    assert found_in(path) == [("note", "the Metal library is not for macOS (0x1)")]


def test_fast_division_by_infinity_is_zero(tmp_path: Path) -> None:
    text = elementwise("q", "air.pow.f32", "float", "float", "float").replace(
        "call float @air.pow.f32(float %va, float %vb)", "fdiv fast float %va, %vb"
    )
    a, out = torch.full((64,), -100.0), torch.ones(64)
    AirLibrary(air_library(tmp_path, {"q": text}).path).kernel("q").launch(
        {"out": out, "a": a, "b": a.neg().exp()}, [64], [64]
    )
    assert torch.equal(out, torch.zeros(64))


def test_a_newer_version_of_air_is_refused(tmp_path: Path) -> None:
    path = air_library(tmp_path, {"fine": elementwise("fine", "air.exp", "float", "float")}).path
    path.write_bytes(path.read_bytes().replace(struct.pack("<4H", 2, 6, 3, 1), struct.pack("<4H", 3, 1, 5, 0)))
    ((severity, message),) = found_in(path)
    assert severity == "error"
    assert message.endswith("the simulator does not support AIR 3.1, only to 2.8")
    with pytest.raises(AirError, match=r"kernel 'fine': the simulator does not support AIR 3\.1"):
        AirLibrary(path).kernel("fine")
