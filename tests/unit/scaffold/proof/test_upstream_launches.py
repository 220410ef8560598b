"""Host code in upstream's idiom against its Metal source: that of all finished families, and each kind of mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from mpsmith.kernels.runtime import catalog
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.proof.checking import check_files
from mpsmith.scaffold.proof.metal_sources import bundled_metal
from mpsmith.scaffold.proof.upstream_launches import check_upstream_launches, host_launches
from mpsmith.scaffold.release_files import files_of
from mpsmith.scaffold.targets.upstream import family
from mpsmith.scaffold.targets.upstream.patch import tree_of
from mpsmith.scaffold.upstream_survey import finished_families
from mpsmith.simulator.metal import ReflectedKernel, reflect
from mpsmith.simulator.upstream.operations import KERNELS, OPERATIONS

# Torch has the kernels of shrink, and a row alone is what logit needs.
WITHOUT_CODE = {"logit", "shrink"}
FAMILIES = sorted(set(finished_families()) - WITHOUT_CODE)

METAL = """
#include <metal_stdlib>
using namespace metal;
template <typename T>
kernel void mode(
    device T* values [[buffer(0)]],
    device const T* self [[buffer(1)]],
    constant long* layout [[buffer(2)]],
    constant int& size [[buffer(3)]],
    device c10::metal::ErrorMessages* reports [[buffer(4)]],
    uint i [[thread_position_in_grid]]) {
}
template [[host_name("mode_float")]] kernel void mode<float>(
    device float*, device const float*, constant long*, constant int&, device c10::metal::ErrorMessages*, uint);
#define SMALL(T) \\
  kernel void small_##T(device T* out, constant ulong& count, uint i [[thread_position_in_grid]]) {}
SMALL(uchar)
SMALL(ushort)
"""
HOST = """
template <typename... Args>
static void launch_rows(const std::string& name, int64_t rows, const Args&... args) {
  auto state = lib.getPipelineStateForFunc(name);
  auto bind = [&](id<MTLComputeCommandEncoder> encoder) { mtl_setArgs(encoder, args...); };
}
std::string moved_as(const Tensor& x) {
  return x.element_size() == 1 ? "uchar" : "ushort";
}
Tensor& mode_out_mps(const Tensor& self, Tensor& values) {
  const auto n = static_cast<int>(self.numel()), unused = 1;
  const auto layout = std::vector<int64_t>{self.numel()};
  const auto suffix = scalarToMetalTypeString(self);
  launch_rows("mode_" + suffix, self.numel(), values, self.contiguous(), layout, n, stream->getErrorBuffer());
  launch_rows("small_" + moved_as(self), 1, values, self.numel());
  return values;
}
"""


@cache
def kernels() -> Mapping[str, ReflectedKernel]:
    return reflect(METAL)


def said(host: str) -> list[str]:
    return [f"{one.line}: {one.message}" for one in check_upstream_launches(Path("a.mm"), host, kernels())]


release = cache(lambda: (source_of(None), tree_of(files_of(None))))


@cache
def code_of(name: str) -> tuple[str, Mapping[str, ReflectedKernel]]:
    """A family's host code and kernels as its patch has them."""
    files = family.generate(family.Family.named(name), *release()).generated.files
    (host,) = (text for path, text in files.items() if path.startswith(f"tree/{OPERATIONS}"))
    (metal,) = (text for path, text in files.items() if path.startswith(f"tree/{KERNELS}"))
    return host, reflect(metal)


def test_there_is_host_code_in_every_family_but_those() -> None:
    assert set(FAMILIES) | WITHOUT_CODE == set(finished_families())
    assert not any((catalog.folder_of(name) / "upstream.mm").exists() for name in WITHOUT_CODE)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_host_code_of_a_family_follows_its_metal(name: str) -> None:
    host, metal = code_of(name)
    assert host_launches(host)
    assert check_upstream_launches(Path(f"{name}.mm"), host, metal) == []


@pytest.mark.parametrize("name", FAMILIES)
def test_reports_an_added_metal_parameter_and_a_removed_kernel(name: str) -> None:
    host, metal = code_of(name)
    gained = {key: ReflectedKernel(key, one.function, (*one.buffers, *one.buffers[-1:])) for key, one in metal.items()}
    launches = [launch for launch in host_launches(host) if launch.bindings]
    assert {one.line for one in check_upstream_launches(Path("a.mm"), host, gained)} == {
        launch.line for launch in launches
    }
    renamed = {f"renamed_{key}": one for key, one in metal.items()}
    assert check_upstream_launches(Path("a.mm"), host, renamed)


def test_accepts_matching_launches() -> None:
    assert said(HOST) == []
    assert len(host_launches(HOST)) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"mode_" + suffix',
            '"modes_" + suffix',
            "14: the Metal source has no kernel modes_*",
        ),
        ('"uchar" : "ushort"', '"char" : "short"', "15: the Metal source has no kernel small_"),
        (", n, stream", ", stream", "14: mode: 4 arguments are bound, and the kernel has 5 buffers"),
        ("layout, n,", "n, layout,", "mode: buffer 2, layout, points to memory, and the number n is bound"),
        ("layout, n,", "layout, layout,", "mode: buffer 3, size, is a number, and the values layout are bound"),
        (
            "values, self.contiguous(), l",
            "self.contiguous(), values, l",
            "buffer 0, values, is bound to self.contiguous()",
        ),
        ("static_cast<int>(self.numel())", "self.numel()", "buffer 3, size, is int, and n is long"),
        ("std::vector<int64_t>", "std::vector<int>", "buffer 2, layout, is long, and layout is int"),
        ("n, stream->getErrorBuffer()", "n, self", "buffer 4, reports, is for errors, and self is bound"),
        ("layout, n, stream->getErrorBuffer()", "stream->getErrorBuffer(), n, layout", "layout, is not for errors"),
        (
            "values, self.contiguous()",
            "x.contiguous(), self",
            "values, is written by the kernel, and x.contiguous() may",
        ),
        (
            "1, values, self.numel()",
            "1, layout, self.numel()",
            "out, points to a tensor's memory, and the values layout",
        ),
    ],
)
def test_reports_each_mistake_at_its_launch(old: str, new: str, message: str) -> None:
    assert HOST.count(old) == 1
    text = HOST.replace(old, new).replace("const Tensor& self, T", "const Tensor& self, const Tensor& x, T")
    assert any(message in finding for finding in said(text)), said(text)


def test_a_name_that_is_computed_elsewhere_leaves_the_kernel_open() -> None:
    open_name = HOST.replace('"small_" + moved_as(self)', '"small_" + named_elsewhere')
    assert said(open_name) == []
    assert said(open_name.replace("1, values, self.numel()", "1, values")) == [
        "15: small_uchar: 1 arguments are bound, and the kernel has 2 buffers"
    ]
    assert said(HOST.replace('"small_" + moved_as(self)', "named_elsewhere")) == []


def test_branches_that_bind_for_one_name_are_read_together() -> None:
    branches = """
void reduce(const std::string& name, const Tensor& self, Tensor& out) {
  auto state = lib.getPipelineStateForFunc(name + (dense ? "_float" : "_uchar"));
  if (dense) {
    mtl_setArgs(encoder, out, self, std::vector<int64_t>{1}, static_cast<int>(1), stream->getErrorBuffer());
  } else {
    mtl_setArgs(encoder, out, self.numel());
  }
}
"""
    assert said(branches) == []
    assert "arguments are bound" in said(branches.replace("out, self.numel()", "out"))[0]
    assert said(branches.replace("out, self.numel()", "out").replace("  } else", "mtl_setBytes(e, n, 3);} else")) == []


def test_no_findings_without_the_metal_source() -> None:
    assert check_upstream_launches(Path("a.mm"), HOST.replace('"mode_"', '"modes_"'), {}) == []


def test_the_source_that_pytorch_bundles_stands_beside(tmp_path: Path) -> None:
    for folder in ("operations", "kernels"):
        (tmp_path / folder).mkdir()
    metal, host = tmp_path / "kernels" / "Mode.metal", tmp_path / "operations" / "Mode.mm"
    metal.write_text(METAL)
    text = f"#include <ATen/native/mps/Mode_metallib.h>\n{HOST}"
    assert bundled_metal(host, text) == [metal]
    assert bundled_metal(host, HOST) == []
    assert not [one for one in check_files([metal]) if re.search("buffers", str(one.findings))]
