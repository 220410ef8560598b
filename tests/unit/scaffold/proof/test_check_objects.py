"""Reading back what a compiled file registers, from objects that the tests compile for arm64 macOS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpsmith.scaffold.errors import ToolchainError
from mpsmith.scaffold.proof.mach_object import MachObject
from mpsmith.scaffold.proof.macos_compiler import demangled, findings_in
from mpsmith.scaffold.proof.registrations import (
    RegisteredKernel,
    check_registrations,
    read_registrations,
    unknown_overload,
)
from mpsmith.scaffold.proof.toolchain import compiler

# The shape of torch's registration code, without torch.
SOURCE = """\
namespace torch { struct Library { void _impl(const char* name, void (*f)()); void _def(const char* schema); }; }
extern void kernel();
static void TORCH_LIBRARY_IMPL_init_aten_MPS_0(torch::Library& m) {
  m._impl("softshrink.out", kernel);
  m._impl("aten::softshrnk", kernel);
}
static void TORCH_LIBRARY_init_mine_1(torch::Library& m) { m._def("thing(Tensor self) -> Tensor"); }
static void TORCH_LIBRARY_IMPL_init_mine_MPS_2(torch::Library& m) { m._impl("thing", kernel); }
using Init = void(torch::Library&);
Init* inits[] = {TORCH_LIBRARY_IMPL_init_aten_MPS_0, TORCH_LIBRARY_init_mine_1, TORCH_LIBRARY_IMPL_init_mine_MPS_2};
"""
KNOWN = frozenset({"softshrink", "softshrink.out", "softshrink_backward", "mode", "mode.values"})


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> MachObject:
    clang = compiler()
    if clang is None:
        pytest.skip("ziglang is not installed")
    folder = tmp_path_factory.mktemp("object")
    (folder / "a.cpp").write_text(SOURCE)
    command = [clang.program, "clang", "-target", "arm64-apple-macos14.0", "-O0", "-c", folder / "a.cpp"]
    subprocess.run([*command, "-o", folder / "a.o"], check=True)
    return MachObject((folder / "a.o").read_bytes())


def test_undefined_symbols(compiled: MachObject) -> None:
    assert "__Z6kernelv" in compiled.undefined()
    assert not [name for name in compiled.undefined() if "init_aten" in name]


def test_registrations_are_read_back(compiled: MachObject) -> None:
    assert read_registrations(compiled) == [
        RegisteredKernel("aten", "MPS", "softshrink.out"),
        RegisteredKernel("aten", "MPS", "aten::softshrnk"),
        RegisteredKernel("mine", "", "thing"),
        RegisteredKernel("mine", "MPS", "thing"),
    ]


def test_a_name_that_does_not_exist_is_found_at_its_line(compiled: MachObject) -> None:
    findings = check_registrations(read_registrations(compiled), KNOWN, Path("a.mm"), SOURCE, {})
    assert [str(finding) for finding in findings] == [
        "a.mm:5: error: there is no operator aten::softshrnk (did you mean softshrink?) [registration]"
    ]


def test_a_promised_registration_that_is_missing_is_an_error(compiled: MachObject) -> None:
    expected = {"softshrink.out": "MPS", "mode": "MPS"}
    findings = check_registrations(read_registrations(compiled)[:1], KNOWN, Path("a.mm"), SOURCE, expected)
    assert [finding.message for finding in findings] == [
        "aten::mode is not registered for MPS, although the scaffold promised it"
    ]


def test_an_operator_of_an_own_namespace_must_be_defined() -> None:
    findings = check_registrations([RegisteredKernel("mine", "MPS", "other")], KNOWN, Path("a.mm"), "", {})
    assert "mine::other is not defined in this file" in findings[0].message


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("mode.values", ""),
        ("mode.value", "aten::mode has no overload 'value'; it has default, values"),
        ("softshrink_backward.out", "aten::softshrink_backward has no overload 'out'; it has default"),
    ],
)
def test_distinguishes_a_wrong_overload_from_a_wrong_operator(name: str, problem: str) -> None:
    assert unknown_overload(name, KNOWN) == problem


def test_a_file_that_is_not_an_object_file_is_refused() -> None:
    with pytest.raises(ToolchainError, match="cannot be read"):
        MachObject(b"\x7fELF" + bytes(60))


def test_messages_of_clang_become_findings() -> None:
    stderr = (
        "a.mm:3:5: error: no visible @interface declares the selector 'x' [-Werror,-Wobjc-method-access]\n"
        "Metal.h:9:1: note: receiver is instance of class declared here\n"
        "a.mm:4:1: warning: format [-Wformat]\n"
        "2 errors generated.\n"
    )
    findings = findings_in(stderr)
    assert [(finding.line, finding.severity, finding.rule) for finding in findings] == [
        (3, "error", "objc-method-access"),
        (4, "warning", "format"),
    ]
    assert "(note: receiver is instance of class declared here, Metal.h:9)" in findings[0].message


def test_symbols_are_shown_as_they_are_written() -> None:
    assert demangled("__ZN2at6native3fooERKNS_6TensorE").startswith(("at::native::foo(", "_ZN2at6native3foo"))
    assert demangled("_printf") == "printf"
