"""Times a check and a build of one Objective-C++ file, compared with clang on the same file without cached headers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CHECK_LIMIT_S, BUILD_LIMIT_S, UNCHANGED_LIMIT_S = 10.0, 15.0, 2.0
_SOURCE = """\
#include <torch/extension.h>
#include <ATen/native/mps/OperationUtils.h>
#import <Metal/Metal.h>
static at::native::mps::MetalShaderLibrary library(R"(
kernel void twice(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; })");
void twice(at::Tensor& x) { library.getKernelFunction("twice")->runCommandBlock([] {}); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""


def main() -> None:
    from mpsmith.scaffold.building import simulated
    from mpsmith.scaffold.building.subject import subject_at
    from mpsmith.scaffold.proof.checking import check_files

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twice.mm"
        path.write_text(_SOURCE)
        for result in check_files([path]):  # keeps the headers
            assert result.accepted, result
        simulated.build(subject_at(path))
        plain = _seconds(lambda: list(check_files([path], use_cache=False, precompile=False)))
        path.write_text(_SOURCE + "// changed\n")
        check = _seconds(lambda: list(check_files([path])))
        unchanged = _seconds(lambda: list(check_files([path])))
        build = _seconds(lambda: simulated.build(subject_at(path)))
    for what, took, limit in (
        ("a check of a changed file", check, CHECK_LIMIT_S),
        ("a check of an unchanged file", unchanged, UNCHANGED_LIMIT_S),
        ("a build", build, BUILD_LIMIT_S),
    ):
        print(f"{what}: {took:.1f} s (limit {limit:.0f}), {took / plain:.2f} of a check without kept headers")


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
