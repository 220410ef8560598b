"""Mistakes that a Mac would show at build time, at load time or never: each is refused, with what is wrong and where.

They need the compiler, the headers and torch's macOS libraries, which the first run fetches.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpsmith.kernels.runtime import catalog
from mpsmith.scaffold.generation.destination import folder_as_destination
from mpsmith.scaffold.generation.from_kernel import prepare_patch
from mpsmith.scaffold.generation.writing import plan, write
from mpsmith.scaffold.manifest import Manifest
from mpsmith.scaffold.operators.kinds import KernelKind
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.proof.checking import CheckResult, check_files, files_to_check
from mpsmith.scaffold.proof.setup import set_up
from mpsmith.scaffold.proof.toolchain import Toolchain
from mpsmith.scaffold.release_files import files_of
from mpsmith.scaffold.targets import Request, extension
from mpsmith.scaffold.targets.upstream import patch as upstream
from mpsmith.scaffold.targets.upstream.family import Family
from mpsmith.simulator.objc.compile_options import parse_options

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

HOST, SHADER, SUPPORT = "src/softshrink.mm", "src/softshrink_metal.h", "src/mps_support.h"


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return set_up(None, print)


@pytest.fixture
def package(tmp_path: Path, toolchain: Toolchain) -> Path:
    """The scaffold of softshrink as an extension."""
    request = Request(source_of(None).operator("softshrink"), KernelKind.UNARY)
    made = extension.generate(request)
    manifest = Manifest("aten::softshrink", "extension", "unary", toolchain.release, made.registers)
    write(plan(folder_as_destination(tmp_path), made.files, manifest))
    return tmp_path


def checked(folder: Path) -> CheckResult:
    (result,) = check_files([path for path in files_to_check(folder) if path.suffix == ".mm"])
    return result


def change(path: Path, old: str, new: str) -> int:
    """Replace the first occurrence; the line of it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


PLAIN = """\
#include <torch/extension.h>
#include <ATEN/mps/MPSStream.h>
#import <Metal/Metal.h>
#include "own.h"
static int64_t length(const at::Tensor& x) {
  id<MTLBuffer> buffer = (id<MTLBuffer>)x.storage().data();
  @try { [NSException raise:NSGenericException format:@"%d", MIN(1, COUNT)]; } @catch (NSException* e) { return 0; }
  return buffer.length;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("length", &length); }
"""


@pytest.mark.usefixtures("toolchain")
def test_a_file_takes_flags_and_its_own_reference_counting(tmp_path: Path) -> None:
    source = tmp_path / "plain.mm"
    source.write_text(PLAIN)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "own.h").touch()
    (result,) = check_files([source])
    assert any("'own.h' file not found" in finding.message for finding in result.findings)
    options = parse_options([f"-I{tmp_path / 'include'}", "-DCOUNT=2"])
    (result,) = check_files([source], options=options)
    assert result.accepted, result.findings
    said = {finding.rule: finding.message for finding in result.findings}
    assert said["arc"] == "it compiles without -fobjc-arc only: the build must not forget it"
    assert said["letter-case"].startswith("<ATEN/mps/MPSStream.h> is ATen/mps/MPSStream.h: ")


@pytest.mark.usefixtures("toolchain")
def test_every_way_to_launch_is_accepted() -> None:
    """The buffer of errors is an argument, and a kernel's source may be a format."""
    programs = Path(__file__).parents[3] / "simulated" / "objc" / "programs"
    (result,) = check_files([programs / "torch_interfaces.mm"])
    assert result.accepted, result.findings


def test_the_scaffold_itself_is_accepted(package: Path) -> None:
    result = checked(package)
    assert result.accepted, result.findings
    assert result.steps == ("metal", "types", "compiled", "linked", "registrations")
    assert result.registers == ("aten::softshrink.out (MPS)",)


MISTAKES = {
    "misspelt selector": (SUPPORT, "setComputePipelineState:", "setComputePipelinState:", r"setComputePipelinState:"),
    "missing selector part": (SUPPORT, " length:sizeof(value) atIndex", " atIndex", r"setBytes:atIndex:"),
    "tensor where a buffer belongs": (
        SUPPORT,
        "[encoder setBuffer:buffer ",
        "[encoder setBuffer:tensor ",
        r"at::Tensor.*id<MTLBuffer>|id<MTLBuffer>.*at::Tensor",
    ),
    "wrong receiver": (
        SUPPORT,
        "[encoder setBuffer:",
        "[buffer setBuffer:",
        r"no known instance method for selector 'setBuffer:offset:atIndex:'",
    ),
    "wrong property": (SUPPORT, "pipeline.maxTotalThreadsPerThreadgroup", "pipeline.maxThreads", r"maxThreads"),
    "wrong struct": (SUPPORT, "dispatchThreads:MTLSizeMake(threads, 1, 1)", "dispatchThreads:threads", r"MTLSize"),
    "retain under ARC": (
        SUPPORT,
        "  [encoder setBuffer:buffer ",
        "  [buffer retain];\n  [encoder setBuffer:buffer ",
        r"ARC forbids explicit message send of 'retain'",
    ),
    "unbridged pointer under ARC": (
        SUPPORT,
        "(__bridge id<MTLBuffer>)const_cast<void*>",
        "(id<MTLBuffer>)const_cast<void*>",
        r"requires a bridged cast",
    ),
    "signature that differs from the schema": (
        HOST,
        "const at::Scalar & lambd,",
        "double lambd,",
        r"softshrink_out_mps has another signature than aten::softshrink\.out|no member|not a structure",
    ),
    "wrong overload name": (
        HOST,
        'm.impl("softshrink.out"',
        'm.impl("softshrink.outt"',
        r"aten::softshrink has no overload 'outt'; it has default, out",
    ),
    "misspelt operator": (
        HOST,
        'm.impl("softshrink.out"',
        'm.impl("softshrnk.out"',
        r"there is no operator aten::softshrnk \(did you mean softshrink",
    ),
    "forgotten registration": (
        HOST,
        'm.impl("softshrink.out", TORCH_FN(softshrink_out_mps));',
        "",
        r"aten::softshrink\.out is not registered for MPS",
    ),
    "function that torch does not export": (
        HOST,
        "static mps_support::Library& library() {",
        "namespace at::native { Tensor mps_secret(const Tensor&); }\n"
        "Tensor (*keep)(const at::Tensor&) = &at::native::mps_secret;\n"
        "static mps_support::Library& library() {",
        r"unknown type name 'Tensor'|undefined symbol: at::native::mps_secret",
    ),
    "ATen call that does not exist": (HOST, "at::empty(", "at::emty(", r"emty"),
    "Metal that does not compile": (SHADER, "return T(float(self));", "const float x = double(self);", r"double"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_refused(package: Path, mistake: str) -> None:
    file, old, new, message = MISTAKES[mistake]
    line = change(package / file, old, new)
    result = checked(package)
    assert not result.accepted
    errors = [finding for finding in result.findings if finding.severity == "error"]
    expected = [finding for finding in errors if re.search(message, finding.message)]
    assert expected, [str(finding) for finding in errors]
    if mistake not in ("forgotten registration", "signature that differs from the schema"):
        assert any(abs(finding.line - line) <= 2 for finding in expected), [str(finding) for finding in expected]


def test_an_undefined_symbol_is_named_as_it_is_written(package: Path) -> None:
    change(
        package / HOST,
        "static mps_support::Library& library() {",
        "namespace at::native { int mps_secret(int); }\nint secret = at::native::mps_secret(1);\n"
        "static mps_support::Library& library() {",
    )
    (finding,) = [finding for finding in checked(package).findings if finding.severity == "error"]
    assert finding.rule == "link"
    assert "undefined symbol: at::native::mps_secret(int)" in finding.message
    assert "mps_secret" in (package / HOST).read_text().splitlines()[finding.line - 1]


def test_an_unknown_selector_is_an_error_without_arc_too(tmp_path: Path, toolchain: Toolchain) -> None:
    file = tmp_path / "a.mm"
    file.write_text(
        "#include <ATen/native/mps/OperationUtils.h>\n\nvoid f(id<MTLBuffer> buffer) { [buffer contentz]; }\n"
    )
    (result,) = check_files([file])
    assert not result.accepted
    assert (result.findings[0].line, "contentz" in result.findings[0].message) == (3, True)


def test_an_unchanged_file_is_answered_from_the_cache(package: Path) -> None:
    first, second = checked(package), checked(package)
    assert not first.cached or second.cached
    assert second.cached
    assert second.findings == first.findings
    change(package / SUPPORT, "uint64_t threads,", "uint64_t threads, ")
    assert not checked(package).cached


@pytest.mark.parametrize("operator", ["mode", "_fused_adagrad_", "linalg_ldl_factor_ex", "segment_reduce", "poisson"])
@pytest.mark.parametrize("target", ["extension", "upstream"])
def test_scaffolds_are_accepted(tmp_path: Path, toolchain: Toolchain, operator: str, target: str) -> None:
    source = source_of(None)
    model = source.operator(operator)
    request = Request(model, KernelKind.UNARY, (operator,))
    if target == "upstream":
        made = upstream.generate(request, upstream.tree_of(files_of(source.release)))
    else:
        made = extension.generate(request)
    promised = (made.registers, made.include, made.definitions, made.arc)
    manifest = Manifest(model.full_name, target, "unary", source.release, *promised)
    write(plan(folder_as_destination(tmp_path), made.files, manifest))
    for result in check_files(files_to_check(tmp_path)):
        assert result.accepted, [str(finding) for finding in result.findings]


@pytest.mark.parametrize(
    "name", [name for name in catalog.families() if (Family.named(name).folder / "upstream.mm").exists()]
)
@pytest.mark.parametrize("release", [None, "2.15.0"])
def test_the_patch_of_each_family_is_accepted(tmp_path: Path, name: str, release: str | None) -> None:
    set_up(release, print)
    write(prepare_patch(source_of(release), Family.named(name), None, out=tmp_path / name).plan)
    results = list(check_files(files_to_check(tmp_path), release))
    assert "linked" in {step for result in results for step in result.steps}
    for result in results:
        assert result.accepted, [str(finding) for finding in result.findings]
