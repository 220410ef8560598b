"""Mistakes between host code and Metal source in a generated extension: `mpsmith check` refuses each of them.

They need the compiler, the headers and torch's macOS libraries, which the first run fetches.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpsmith.scaffold.generation.destination import folder_as_destination
from mpsmith.scaffold.generation.writing import plan, write
from mpsmith.scaffold.manifest import Manifest
from mpsmith.scaffold.operators.kinds import KernelKind
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.proof.checking import CheckResult, check_files
from mpsmith.scaffold.proof.setup import set_up
from mpsmith.scaffold.targets import Request, extension

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

HOST, METAL, SUPPORT = "src/mode.mm", "src/mode_metal.h", "src/mps_support.h"
DISPATCH = "    [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];\n"
LAST = "      row_length);"
Edit = tuple[str, str, str]

MUTATIONS: dict[str, tuple[list[Edit], str]] = {
    "a shader's name that is not in the source": ([(HOST, '"mode_" + metal', '"mod_" + metal')], "no kernel mod_float"),
    "a float for a long": ([(HOST, LAST, "      static_cast<float>(row_length));")], "row_length, is long"),
    "a shorter number in Metal": (
        [
            (METAL, "constant long& row_length", "constant int& row_length"),
            (METAL, "      constant long&, \\", "      constant int&, \\"),
        ],
        "row_length, is int",
    ),
    "a dispatch that is removed": ([(SUPPORT, DISPATCH, "")], "nothing is dispatched"),
    "a second registration that does not fit": (
        [(HOST, "TORCH_FN(mode_mps));", 'TORCH_FN(mode_mps));\n  m.impl("mode.values", TORCH_FN(mode_mps));')],
        r"another signature than aten::mode\.values",
    ),
    "a string that std::bind would take": ([(HOST, LAST, '      std::string("x"));')], "set_argument"),
    "a bool for a long": ([(HOST, LAST, "      keepdim);")], "'set_argument' is ambiguous"),
    "a parameter that is gone from Metal": (
        [
            (METAL, "    constant ulong& threads [[buffer(4)]],\n", ""),
            (METAL, "      constant ulong&, \\\n", ""),
            (METAL, "  if (thread_index >= threads) {\n    return;\n  }\n", ""),
        ],
        "5 arguments are bound, and the kernel has 4",
    ),
    "a parameter more in Metal": (
        [
            (METAL, "threads [[buffer(4)]],\n", "threads [[buffer(4)]],\n    constant long& dim [[buffer(5)]],\n"),
            (METAL, "      constant ulong&, \\\n", "      constant ulong&, \\\n      constant long&, \\\n"),
        ],
        "5 arguments are bound, and the kernel has 6",
    ),
    "one buffer index twice": (
        [(METAL, "indices [[buffer(1)]]", "indices [[buffer(0)]]")],
        "one-buffer-twice|to buffer 0",
    ),
    "an output that is constant": (
        [
            (METAL, "device T* values", "device const T* values"),
            (METAL, "      device T*, \\", "      device const T*, \\"),
        ],
        "read-only variable is not assignable",
    ),
    "address spaces mixed": (
        [(METAL, "  long best = 0;", "  thread const T* wrong = self;\n  long best = 0;")],
        "const thread float",
    ),
    "another type in the instantiation": (
        [(METAL, "      device long*, \\", "      device int*, \\")],
        "no matching function|explicit instantiation",
    ),
    "a position that is a float": (
        [(METAL, "    uint thread_index [[", "    float thread_index [["), (METAL, "      uint);", "      float);")],
        "array subscript is not an integer",
    ),
    "double in Metal": (
        [(METAL, "  long best = 0;", "  double d = 1; long best = 0;")],
        "'double' is not supported in Metal",
    ),
    "a number for a pointer in Metal": (
        [
            (METAL, "device const T* self", "constant T& self"),
            (METAL, "      device const T*, \\", "      constant T&, \\"),
        ],
        "subscripted value is not an array",
    ),
    "a float parameter": (
        [
            (METAL, "constant long& row_length", "constant float& row_length"),
            (METAL, "      constant long&, \\", "      constant float&, \\"),
        ],
        "array subscript is not an integer",
    ),
    "a result that the schema does not have": (
        [(HOST, "return ::std::tuple<at::Tensor,at::Tensor>(values, indices);", "return values;")],
        "no viable conversion from returned value",
    ),
    "a Metal source of another name": ([(HOST, "built(kModeMetal)", "built(kModesMetal)")], "kModesMetal"),
    "a kernel's function of another name": (
        [(METAL, "kernel void mode(", "kernel void modal(")],
        "no kernel template has that name",
    ),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The scaffold of mode as an extension."""
    toolchain = set_up(None, print)
    made = extension.generate(Request(source_of(None).operator("mode"), KernelKind.SORT))
    options = made.registers, made.include, made.definitions
    manifest = Manifest("aten::mode", "extension", "sort", toolchain.release, *options)
    write(plan(folder_as_destination(tmp_path), made.files, manifest))
    return tmp_path


def checked(package: Path) -> CheckResult:
    (result,) = check_files([package / HOST])
    return result


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


class TestHostMutations:
    def test_the_scaffold_itself_is_accepted(self, package: Path) -> None:
        result = checked(package)
        assert result.accepted, result.findings

    @pytest.mark.parametrize("name", MUTATIONS)
    def test_a_mutation_is_refused(self, package: Path, name: str) -> None:
        edits, message = MUTATIONS[name]
        for file, old, new in edits:
            change(package / file, old, new)
        errors = [finding.message for finding in checked(package).findings if finding.severity == "error"]
        assert any(re.search(message, error) for error in errors), errors

    def test_a_signature_that_nothing_asserts_any_more(self, package: Path) -> None:
        host = package / HOST
        host.write_text(re.sub(r"static_assert\(.*?\);\n", "", host.read_text(), flags=re.DOTALL))
        change(host, "bool keepdim)", "int64_t keepdim)")
        errors = [finding.message for finding in checked(package).findings if finding.severity == "error"]
        assert any("mode_mps has another signature than aten::mode" in error for error in errors), errors
