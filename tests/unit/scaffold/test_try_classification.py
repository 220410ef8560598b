"""Whose fault a failure of a tried checkout is."""

from __future__ import annotations

import pytest

from mpsmith.scaffold.checkout import classification
from mpsmith.scaffold.checkout.results import TryResult, TryRow
from mpsmith.scaffold.checkout.worker import TestEnd
from mpsmith.simulator.clang import Diagnostic


@pytest.mark.parametrize(
    ("message", "result", "reason"),
    [
        ("'nanobind/nanobind.h' file not found", TryResult.SKIPPED, "it needs the headers of nanobind: install it"),
        ("'utils.h' file not found", TryResult.DEFECT, "'utils.h' file not found"),
        ("'torch/gone.h' file not found", TryResult.DEFECT, "'torch/gone.h' file not found"),
        ("'Metal/MTLFoo.h' file not found", TryResult.REFUSED, "'Metal/MTLFoo.h' file not found"),
        ("'mach-o/getsect.h' file not found", TryResult.REFUSED, "'mach-o/getsect.h' file not found"),
        ("'simd/simd.h' file not found", TryResult.REFUSED, "'simd/simd.h' file not found"),
        *(
            (f"use of undeclared identifier '{n}'", TryResult.REFUSED, f"use of undeclared identifier '{n}'")
            for n in ("DISPATCH_QUEUE_NEW", "kIOSome", "kCFSome")
        ),
        ("instance method '-foo:' not found", TryResult.REFUSED, "instance method '-foo:' not found"),
        ("expected ';'", TryResult.DEFECT, "expected ';'"),
    ],
)
def test_errors_of_the_compiler(message: str, result: TryResult, reason: str) -> None:
    row = classification.diagnostic_row("extension", "name", Diagnostic("a.mm", 3, 1, "error", message, "compile"))
    assert (row.result, row.reason, row.file, row.line) == (result, reason, "a.mm", 3)


def test_a_build_script_that_needs_a_module_is_not_a_defect() -> None:
    row = classification.script_row("setup.py", "setup.py fails: No module named 'mlx'", has_host_code=True)
    assert (row.result, row.reason) == (TryResult.SKIPPED, "it needs the module mlx: install it")
    assert classification.script_row("setup.py", "no Xcode", has_host_code=True).result is TryResult.DEFECT


@pytest.mark.parametrize(
    ("fixture", "result", "reason"),
    [
        ("benchmark", TryResult.SKIPPED, "it needs the module pytest-benchmark: install it"),
        ("x", TryResult.DEFECT, "pytest has no fixture for one of its arguments"),
    ],
)
def test_a_fixture_of_a_plugin_is_to_be_installed(fixture: str, result: TryResult, reason: str) -> None:
    text = f"('{fixture}', <SubRequest '{fixture}' for <Function test_a>>)"
    row = classification.test_row(TestEnd("test.py::test_a", "failed", text, ("FixtureLookupError",)), frozenset(), ())
    assert (row.result, row.reason) == (result, reason)


def test_a_process_that_died_is_a_defect_where_the_device_explains_it() -> None:
    died = classification.test_row(TestEnd("test.py::test_a", "died", "SIGABRT: no memory"), frozenset(), ())
    assert (died.result, died.reason) == (TryResult.WRONG, "the process died of SIGABRT: no memory")
    limit = "SIGABRT: what(): -[NSError domain]: the simulated Metal host has no such method"
    refused = classification.test_row(TestEnd("test.py::test_a", "died", limit), frozenset(), ())
    assert refused.result is TryResult.REFUSED
    explained = classification.test_row(
        TestEnd("test.py::test_a", "died", "SIGSEGV: follows data_ptr()", ours=True), frozenset(), ()
    )
    assert (explained.result, explained.reason) == (TryResult.DEFECT, "the process died of SIGSEGV: follows data_ptr()")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("simulated Metal kernel 'k' (program_source:3): data race on byte 0", TryResult.DEFECT),
        ("Metal, simulated: endEncoding was called twice on the same encoder", TryResult.DEFECT),
        ("at::mps::f() is not simulated: the torch file needs Apple's frameworks (used at a.mm:3)", TryResult.REFUSED),
        ("-[SimulatedDevice f]: the simulated Metal host has no such method", TryResult.REFUSED),
        ("Tensor-likes are not close!", TryResult.WRONG),
    ],
)
def test_extension_errors_are_classified(text: str, result: TryResult) -> None:
    row = classification.test_row(TestEnd("test.py::test_a", "failed", text, ("RuntimeError",)), frozenset(), ())
    assert row.result is result


def test_an_extension_that_was_not_built_is_not_a_module_to_install() -> None:
    end = TestEnd("test.py", "failed", "No module named 'ours._C'", ("ModuleNotFoundError",))
    assert (
        classification.test_row(end, frozenset({"ours"}), {"ours._C"}).reason
        == "it needs the extension ours._C, see above"
    )
    assert classification.test_row(end, frozenset({"ours"}), ()).result is TryResult.WRONG


def test_metal_that_the_simulator_lacks_is_its_limit() -> None:
    lacks = Diagnostic("a.metal", 1, 0, "error", "<metal_tensor>: tensors", "metal: not-supported")
    assert classification.diagnostic_row("metal", "a.metal", lacks).result is TryResult.REFUSED


@pytest.mark.parametrize(
    ("message", "result"),
    [("expected namespace name", TryResult.SKIPPED), ("expected ';' after expression", TryResult.DEFECT)],
)
def test_metal_that_host_code_reads_may_be_part_of_a_source(message: str, result: TryResult) -> None:
    row = classification.diagnostic_row("metal", "k.metal", Diagnostic("k.metal", 8, 1, "error", message, "compile"))
    joined = classification.joined_row(row, "k.mm", "struct A {{\n")
    assert joined.result is result
    assert ("k.mm may compile it with other source" in joined.reason) is (result is TryResult.SKIPPED)


@pytest.mark.parametrize(
    ("source", "reader", "result"),
    [
        ("struct A {{\n  int a;\n}};\n", "k.py", TryResult.SKIPPED),
        ("kernel void f(device float* x [[buffer(0)]]) {{\n", "k.py", TryResult.SKIPPED),
        ("struct A {{\n  int a;\n}};\n", "k.mm", TryResult.DEFECT),
        ("constant int a[1][1] = {{\n  {0} }};\nstruct A {\n int a\n};", "k.py", TryResult.DEFECT),
    ],
)
def test_a_template_that_python_fills_in_is_skipped(source: str, reader: str, result: TryResult) -> None:
    row = TryRow("metal", "k.metal", TryResult.DEFECT, "expected ';'", "k.metal", 1)
    assert classification.joined_row(row, reader, source).result is result


@pytest.mark.parametrize("module", ["'own'", "partially initialized module 'own'"])
def test_a_module_that_imports_its_extension_by_name_needs_it(module: str) -> None:
    end = TestEnd("t.py", "failed", f"cannot import name '_C' from {module} (own/__init__.py)")
    row = classification.test_row(end, frozenset({"own"}), {"own._C"})
    assert (row.result, row.reason) == (TryResult.SKIPPED, "it needs the extension own._C, see above")
    assert classification.test_row(end, frozenset({"own"}), ()).result is TryResult.WRONG
