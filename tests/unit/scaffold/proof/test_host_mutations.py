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
from mpsmith.scaffold.proof.checking import Answer, check_files
from mpsmith.scaffold.proof.setup import set_up
from mpsmith.scaffold.targets import Request, extension

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

HOST, METAL, SUPPORT = "src/mode.mm", "src/mode_metal.h", "src/mps_support.h"
DISPATCH = "    [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];\n"
LAST = "      row_length);"
Edit = tuple[str, str, str]

MUTATIONS: dict[str, tuple[list[Edit], str]] = {
    "a shader's name that is not in the source": ([(HOST, '"mode_" + metal', '"mod_" + metal')], "no kernel mod_float"),
    "a changed host_name": ([(METAL, 'host_name("mode_"', 'host_name("modes_"')], "no kernel mode_float"),
    "a dtype that is not instantiated": ([(METAL, "INSTANTIATE_mode(half)\n", "")], "no kernel mode_half"),
    "an argument that is dropped": ([(HOST, "      self_dense,\n      row", "      row")], "4 arguments are bound"),
    "an argument too many": ([(HOST, LAST, f"      row_length,\n{LAST}")], "6 arguments are bound"),
    "a float for a long": ([(HOST, LAST, "      static_cast<float>(row_length));")], "row_length, is long"),
    "a tensor for a number": ([(HOST, LAST, "      self_dense);")], "row_length, is a number"),
    "a number for a tensor": (
        [(HOST, "      self_dense,\n", "      static_cast<int64_t>(1),\n")],
        "self, points to memory",
    ),
    "a shorter number in Metal": (
        [
            (METAL, "constant long& row_length", "constant int& row_length"),
            (METAL, "      constant long&, \\", "      constant int&, \\"),
        ],
        "row_length, is int",
    ),
    "buffers swapped on the host": (
        [(HOST, "      values_dense,\n      indices_dense,", "      indices_dense,\n      values_dense,")],
        "values, is bound to indices_dense",
    ),
    "a dispatch that is removed": ([(SUPPORT, DISPATCH, "")], "nothing is dispatched"),
    "endEncoding on torch's encoder": (
        [(SUPPORT, DISPATCH, f"{DISPATCH}    [encoder endEncoding];\n")],
        "that torch has open",
    ),
    "a second registration that does not fit": (
        [(HOST, "TORCH_FN(mode_mps));", 'TORCH_FN(mode_mps));\n  m.impl("mode.values", TORCH_FN(mode_mps));')],
        r"another signature than aten::mode\.values",
    ),
    "a string that std::bind would take": ([(HOST, LAST, '      std::string("x"));')], "set_argument"),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The scaffold of mode as an extension."""
    toolchain = set_up(None, print)
    made = extension.generate(Request(source_of(None).operator("mode"), KernelKind.SORT))
    told = made.registers, made.include, made.definitions
    manifest = Manifest("aten::mode", "extension", "sort", toolchain.release, *told)
    write(plan(folder_as_destination(tmp_path), made.files, manifest))
    return tmp_path


def checked(package: Path) -> Answer:
    (answer,) = check_files([package / HOST])
    return answer


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


class TestHostMutations:
    def test_the_scaffold_itself_is_accepted(self, package: Path) -> None:
        answer = checked(package)
        assert answer.accepted, answer.findings

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
