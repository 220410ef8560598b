"""Modules that are read without a compiler: signatures, and what a damaged or hostile module does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mpsmith.simulator.air.bitcode import declared_functions, signature_of_bitcode
from mpsmith.simulator.air.compiler import default_air_compiler
from mpsmith.simulator.air.signature import BuiltinArgument, KernelSignature, StructField
from mpsmith.simulator.errors import AirError, KernelCompileError, MalformedKernelError, UnsupportedKernelError
from support.air_kernels import FLUSHING, air_library, bitcode, buffer, builtin, elementwise, kernel
from support.needs import needs_metal_on_host

needs_metal_on_host()

PARAMETERS = "ptr addrspace(1) %out, ptr addrspace(2) %params, i32 %t"
STRUCT = buffer(
    *("params", "Params", 3, '!"air.buffer_size", i32 24'),
    *('!"air.struct_type_info", !50',),
    space="constant",
    size=24,
)
STRUCT_FIELDS = """
!50 = !{i32 0, i32 4, i32 0, !"float", !"p", !"air.struct_type_info", !51, i32 4, i32 16, i32 0, !"metal::array", !"n",
        !"air.struct_type_info", !52, i32 20, i32 4, i32 0, !"Inner", !"inner"}
!51 = !{i32 0, i32 4, i32 4, !"uint", !"__elems"}
!52 = !{i32 0, i32 2, i32 2, !"short", !"pair"}
"""


def signature(text: str, name: str = "k") -> KernelSignature:
    return signature_of_bitcode(bitcode(text), name)


def test_a_signature_has_names_types_and_members() -> None:
    text = kernel(
        *("k", PARAMETERS, [buffer("out", "long", 0), STRUCT, builtin("thread_position_in_grid")], ""),
        metadata=STRUCT_FIELDS + FLUSHING,
    )
    parsed = signature(text)
    assert parsed.names == ("out", "params")
    assert parsed.flush_denormals
    assert parsed.max_threads is None
    out, params = parsed.buffers
    assert (out.index, out.type_name, out.size, out.access, out.by_reference) == (0, "long", 8, "read_write", False)
    assert (params.index, params.access, params.by_reference, params.address_space) == (3, "read", True, 2)
    assert params.fields == (
        StructField("p", "float", 0, 4, 0),
        StructField("n", "metal::array", 4, 16, 0, fields=(StructField("__elems", "uint", 0, 4, 4),)),
        StructField("inner", "Inner", 20, 4, 0, fields=(StructField("pair", "short", 0, 2, 2),)),
    )
    assert parsed.builtins == (BuiltinArgument(2, "thread_position_in_grid", "thread_position_in_grid", "uint"),)
    assert "params" in parsed
    assert "other" not in parsed


def test_an_argument_that_is_not_used_is_marked() -> None:
    parsed = signature(
        kernel("k", "ptr addrspace(1) %a, ptr addrspace(1) %b",
               [buffer("a", "float", 0), buffer("b", "float", 1, '!"air.arg_unused"')], "")
    )  # fmt: skip
    assert [argument.used for argument in parsed.buffers] == [True, False]


def test_declared_functions() -> None:
    text = elementwise("k", "air.exp.f32", "float", "float")
    assert declared_functions(bitcode(text)) == ("air.exp.f32",)


def refused(folder: Path, module: str | bytes, name: str = "k") -> str:
    """What launching a module's kernel ends with."""
    library = air_library(folder, {name: module})
    with pytest.raises(AirError) as caught:
        library.kernel(name).launch({}, [1], [1])
    message = str(caught.value)
    assert message.startswith(f"shipped kernel {name} of torch 9.9.9: ")
    assert "\n" not in message
    return message


NOTHING = kernel("k", "ptr addrspace(1) %out", [buffer("out", "float", 0, '!"air.arg_unused"')], "")

DAMAGED = {
    "no !air.kernel": (NOTHING.replace("!air.kernel = !{!0}", ""), "it has 0 kernels"),
    "two kernels": (NOTHING.replace("!air.kernel = !{!0}", "!air.kernel = !{!0, !0}"), "it has 2 kernels"),
    "an argument too many": (
        kernel("k", "ptr addrspace(1) %a", [buffer("a", "float", 0), buffer("b", "float", 1)], "").replace(
            '!"air.buffer"', '!"air.buffer", !"air.arg_unused"'
        ),
        "it has 1 parameters and describes 2",
    ),
    "one index twice": (
        kernel("k", "ptr %a, ptr %b", [buffer("a", "float", 1), buffer("b", "float", 1)], ""),
        r"two of its buffers have one index \(\[1, 1\]\)",
    ),
    "one name twice": (
        kernel("k", "ptr %a, ptr %b", [buffer("a", "float", 0), buffer("a", "float", 1)], ""),
        "two of its buffers have one name",
    ),
    "an index that Metal has not": (
        kernel("k", "ptr %a", [buffer("a", "float", 31)], ""),
        "a buffer's index is outside of Metal's range",
    ),
    "no index": (NOTHING.replace('!"air.location_index"', '!"air.location"'), "an argument's property has no name"),
    "a struct that holds itself": (
        kernel("k", "ptr %a", [buffer("a", "S", 0, '!"air.struct_type_info", !50', size=4)], "",
               metadata='!50 = !{!"air.struct_type_info", !50, i32 0, i32 4, i32 0, !"S", !"s"}'),
        "a struct of its arguments holds itself",
    ),
    "another kernel": (NOTHING.replace("@k", "@other"), "its module has no function of its name"),
    "a buffer that is a number": (NOTHING.replace("ptr addrspace(1) %out", "i32 %out"), "its buffer out is passed as"),
    "no bitcode": (b"\xde\xc0\x17\x0b nothing that a compiler knows", "its bitcode ends too early"),
    "a text": (b"kernel void k() {}", "its module is not LLVM bitcode"),
    "nothing": (b"", "its module is not LLVM bitcode"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_module_is_refused_with_its_name(tmp_path: Path, damage: str) -> None:
    module, message = DAMAGED[damage]
    with pytest.raises(MalformedKernelError, match=message):
        raise MalformedKernelError(refused(tmp_path, module))


def test_an_unknown_operation_is_named(tmp_path: Path) -> None:
    text = elementwise("k", "air.get_extent_private_tensor.i32", "i32", "i32").replace(
        '!"air.buffer"', '!"air.buffer", !"air.arg_unused"'
    )
    message = refused(tmp_path, text)
    assert "it needs air.get_extent_private_tensor.i32, which the host does not support" in message
    with pytest.raises(UnsupportedKernelError):
        air_library(tmp_path, {"k": text}).kernel("k").compile()


def test_a_builtin_that_the_host_does_not_know_is_named(tmp_path: Path) -> None:
    message = refused(tmp_path, kernel("k", "i32 %t", [builtin("render_target_array_index")], ""))
    assert "it asks for render_target_array_index as " in message


def test_a_module_that_calls_the_host_is_refused(tmp_path: Path) -> None:
    text = kernel("k", "", [], "  call void @abort()", declarations="declare void @abort()")
    assert "it needs abort, which the host does not support" in refused(tmp_path, text)


def test_rejects_inline_assembly(tmp_path: Path) -> None:
    text = kernel("k", "", [], '  call void asm sideeffect "hlt", ""()')
    assert "it contains inline assembly" in refused(tmp_path, text)


def test_code_that_does_not_load_is_an_error_with_its_reason(tmp_path: Path) -> None:
    text = kernel("k", "", [], "  call void @llvm.no.such()", declarations="declare void @llvm.no.such()")
    with pytest.raises(KernelCompileError, match=r"torch 9\.9\.9: its code cannot be loaded: .*llvm.no.such"):
        air_library(tmp_path, {"k": text}).kernel("k").compile()


def test_bitcode_that_only_llvm_finds_damaged_is_an_error_with_its_reason() -> None:
    with pytest.raises(MalformedKernelError, match=r"LLVM cannot read its module: \w+"):
        default_air_compiler().disassemble(b"BC\xc0\xde" + bytes(64))


def test_no_truncated_or_changed_module_does_more_than_raise(tmp_path: Path) -> None:
    """Reading is done in this process: whatever the bytes, it ends in a result or in an AirError."""
    whole = bitcode(elementwise("k", "air.exp.f32", "float", "float"))
    choice = random.Random(12)
    for _ in range(400):
        module = bytearray(whole[: choice.randrange(len(whole))] if choice.random() < 0.5 else whole)
        for _ in range(choice.randrange(4)):
            if module:
                module[choice.randrange(len(module))] = choice.randrange(256)
        for read in (lambda data: signature_of_bitcode(data, "k"), declared_functions):
            try:
                read(bytes(module))
            except AirError:
                continue


def test_a_library_is_read_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.exp.f32", "float", "float")})
    monkeypatch.setattr("mpsmith.simulator.air.library.default_air_compiler", lambda: pytest.fail("asked for"))
    assert library.names == ("k",)
    assert library.signature("k").names == ("out", "a")
    with pytest.raises(KeyError):
        library.signature("other")
