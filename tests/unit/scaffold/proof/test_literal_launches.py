"""Mistakes between host code and the Metal source that it launches: each is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.proof.literal_launches import (
    check_encoders,
    check_literal_launches,
    kernel_parameters,
    named_types,
)
from mpsmith.scaffold.proof.signatures import signature_assertions

METAL = """
#include <metal_stdlib>
using namespace metal;
template <typename T>
kernel void mode(
    device T* values [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* self [[buffer(2)]],
    constant long& row_length [[buffer(3)]],
    constant float& scale [[buffer(4)]],
    constant ulong& threads [[buffer(5)]],
    uint thread_index [[thread_position_in_grid]]) {
}
"""
NAMES = {"mode_float", "mode_half", "mode_bfloat"}
HOST = """
using mps_support::launch; at::Tensor mode_mps() {
  // launch(library(), "commented_" + metal_type(x), 1);
  launch(
      library(),
      "mode_" + metal_type(self_dense.scalar_type()),
      self_dense.size(0),
      values_dense,
      indices_dense,
      self_dense,
      row_length,
      static_cast<float>(scale));
}
"""
UPSTREAM = """
  auto kernel = lib.getKernelFunction("mode_" + scalarToMetalTypeString(self_dense));
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, values_dense);
    kernel->setArg(1, indices_dense);
    kernel->setArg(2, self_dense);
    kernel->setArg(3, row_length);
    kernel->setArg(4, static_cast<float>(scale));
    kernel->setArg(5, threads);
    kernel->dispatch(threads);
  });
"""
TOGETHER = """
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    auto encoder = stream->commandEncoder();
    auto state = lib.getPipelineStateForFunc("mode_" + scalarToMetalTypeString(self_dense));
    [encoder setComputePipelineState:state];
    mtl_setArgs(encoder, values_dense, indices_dense, self_dense, row_length, static_cast<float>(scale), threads);
    mtl_dispatch1DJob(encoder, state, threads);
  });
"""
SUPPORT = """
void launch() {
  const auto encode = [&](id<MTLComputeCommandEncoder> encoder) {
    [encoder setComputePipelineState:pipeline];
    [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
  };
  encode(stream->commandEncoder());
}
"""


def messages(host: str, metal: str = METAL, names: set[str] = NAMES) -> list[str]:
    findings = check_literal_launches(Path("a.mm"), host, names, kernel_parameters([metal]))
    return [f"{finding.line}: {finding.message}" for finding in findings]


class TestLaunches:
    @pytest.mark.parametrize("host", [HOST, UPSTREAM, TOGETHER])
    def test_accepts_matching_launches(self, host: str) -> None:
        assert messages(host) == []

    def test_a_shader_that_is_not_in_the_source(self) -> None:
        (finding,) = messages(HOST.replace('"mode_"', '"mod_"'))
        assert finding.startswith("4: the Metal source has no kernel mod_float, mod_half, mod_bfloat")

    def test_each_type_that_the_host_can_put_behind_a_name_needs_a_kernel(self) -> None:
        support = """
inline std::string metal_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "float";
    case at::kLong:
      return "long";
  }
}
"""
        assert named_types([SUPPORT, support]) == ["float", "long"]
        assert named_types([SUPPORT]) == ("float", "half", "bfloat")
        findings = check_literal_launches(Path("a.mm"), HOST, NAMES, kernel_parameters([METAL]), named_types([support]))
        assert [finding.message for finding in findings if "has no kernel mode_long" in finding.message]

    def test_a_host_name_that_was_changed_or_a_dtype_that_is_not_instantiated(self) -> None:
        (finding,) = messages(HOST, names={"mode_float", "mode_half", "mode_bfloat16"})
        assert "has no kernel mode_bfloat" in finding

    def test_a_function_asked_for_by_a_literal(self) -> None:
        assert "no kernel modus" in messages('[library newFunctionWithName:@"modus"];')[0]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("      self_dense,\n      row_length", "      row_length", "5 arguments are bound, and the kernel has 6"),
            ("      row_length,", "      1.0f,", "buffer 3, row_length, is long, and 1.0f is float"),
            ("static_cast<float>(scale)", "static_cast<int64_t>(scale)", "buffer 4, scale, is float"),
            ("static_cast<float>(scale)", "static_cast<double>(scale)", "buffer 4, scale, is float"),
            (
                "      values_dense,\n      indices_dense,",
                "      indices_dense,\n      values_dense,",
                "buffer 0, values, is bound to indices_dense, which belongs to the parameter indices",
            ),
            ("      row_length,", "      self_dense,", "buffer 3, row_length, is a number, and the tensor self_dense"),
            (
                "      self_dense,\n      row",
                "      static_cast<int64_t>(3),\n      row",
                "buffer 2, self, points to memory",
            ),
        ],
    )
    def test_bindings_that_contradict_the_kernel_are_findings(self, old: str, new: str, message: str) -> None:
        assert old in HOST
        findings = messages(HOST.replace(old, new))
        assert findings
        assert message in findings[0]

    def test_buffers_swapped_in_metal(self) -> None:
        swapped = METAL.replace("device T* values [[buffer(0)]]", "device const T* self [[buffer(0)]]").replace(
            "device const T* self [[buffer(2)]]", "device T* values [[buffer(2)]]"
        )
        assert any("buffer 0, self, is bound to values_dense" in line for line in messages(HOST, swapped))

    def test_numbers_swapped_in_metal(self) -> None:
        swapped = METAL.replace("row_length [[buffer(3)]]", "row_length [[buffer(5)]]").replace(
            "threads [[buffer(5)]]", "threads [[buffer(3)]]"
        )
        findings = messages(HOST, swapped)
        assert any("buffer 3, threads, is bound to row_length" in line for line in findings)
        assert any("buffer 5, row_length, is bound to static_cast<int64_t>(threads)" in line for line in findings)

    def test_a_number_may_be_bound_twice(self) -> None:
        twice = METAL.replace("constant float& scale", "constant long& columns")
        assert messages(HOST.replace("static_cast<float>(scale)", "row_length"), twice) == []

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("setArg(0, values_dense)", "setArg(0, self_dense)", "buffer 0, values, is bound to self_dense"),
            ("    kernel->setArg(5, threads);\n", "", "5 arguments are bound, and the kernel has 6"),
        ],
    )
    def test_the_same_in_torchs_own_way(self, old: str, new: str, message: str) -> None:
        assert message in messages(UPSTREAM.replace(old, new))[0]

    def test_the_buffer_of_errors_is_an_argument(self) -> None:
        assert messages(UPSTREAM.replace("setArg(5, threads)", "setErrorBufferIndex(5)")) == []

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "values_dense, indices_dense",
                "indices_dense, values_dense",
                "buffer 0, values, is bound to indices_dense",
            ),
            (", threads);\n    mtl", ");\n    mtl", "5 arguments are bound, and the kernel has 6"),
        ],
    )
    def test_the_same_where_all_are_bound_at_once(self, old: str, new: str, message: str) -> None:
        assert old in TOGETHER
        assert message in messages(TOGETHER.replace(old, new))[0]

    def test_arguments_that_are_bound_in_parts_are_left_alone(self) -> None:
        parts = TOGETHER.replace(", threads);\n    mtl", ");\n    mtl_setBytes(encoder, threads, 5);\n    mtl")
        assert messages(parts) == []
        assert messages(TOGETHER.replace("mtl_setArgs(encoder, values", "mtl_setArgs<1>(encoder, values")) == []

    def test_torchs_own_host_code_may_have_fewer_types_and_a_launch_of_ones_own_is_left_alone(self) -> None:
        assert messages(UPSTREAM, names={"mode_long"}) == []
        assert messages(UPSTREAM, names={"modus_long"})
        assert messages(HOST.replace("using mps_support::launch;", "").replace('"mode_"', '"mod_"')) == []

    def test_no_findings_without_the_metal_source(self) -> None:
        assert messages(HOST.replace('"mode_"', '"mod_"'), names=set()) == []


class TestEncoders:
    def test_dispatch_on_torchs_encoder_is_accepted(self) -> None:
        assert check_encoders(Path("a.h"), SUPPORT) == []
        assert check_encoders(Path("a.mm"), UPSTREAM) == []
        assert check_encoders(Path("a.mm"), TOGETHER) == []

    def test_a_dispatch_that_is_missing(self) -> None:
        without = "".join(line for line in SUPPORT.splitlines(keepends=True) if "dispatchThreads" not in line)
        (finding,) = check_encoders(Path("a.h"), without)
        assert (finding.line, "nothing is dispatched" in finding.message) == (4, True)
        (finding,) = check_encoders(Path("a.mm"), UPSTREAM.replace("kernel->dispatch(threads);", ""))
        assert "nothing is dispatched" in finding.message
        (finding,) = check_encoders(
            Path("a.mm"), TOGETHER.replace("    mtl_dispatch1DJob(encoder, state, threads);\n", "")
        )
        assert "nothing is dispatched" in finding.message

    def test_the_encoder_that_torch_has_open_is_not_ended(self) -> None:
        ended = SUPPORT.replace("group, 1, 1)];", "group, 1, 1)];\n    [encoder endEncoding];")
        (finding,) = check_encoders(Path("a.h"), ended)
        assert (finding.line, "that torch has open" in finding.message) == (6, True)

    def test_an_encoder_of_ones_own_is_ended(self) -> None:
        own = "id e = [buffer computeCommandEncoder]; [e setComputePipelineState:p];"
        assert check_encoders(Path("a.mm"), f"{own} [e dispatchThreads:a]; [e endEncoding];") == []


class TestSignatures:
    HOST = 'TORCH_LIBRARY_IMPL(aten, MPS, m) {\n  m.impl("mode", TORCH_FN(mode_mps));\n}\n'
    OWN = "static_assert(std::is_same_v<decltype(mode_mps), c10::fn_remove_symint<at::_ops::mode::schema>::type>);\n"
    KNOWN = frozenset({"mode", "mode.values", "put_"})

    def asserted(self, text: str) -> str:
        return signature_assertions(Path("a.mm"), text, self.KNOWN)

    def test_a_file_that_asserts_it_itself_needs_no_more(self) -> None:
        assert self.asserted(self.OWN + self.HOST) == ""

    def test_where_the_assertion_was_deleted_it_is_made_at_the_line_of_the_registration(self) -> None:
        text = self.asserted(self.HOST)
        assert '#line 2 "a.mm"\nstatic_assert(std::is_same_v<decltype(mode_mps)' in text
        assert "at::_ops::mode::schema" in text

    def test_a_second_registration_has_its_own_assertion(self) -> None:
        second = self.HOST.replace("}\n", '  m.impl("mode.values", TORCH_FN(mode_mps));\n}\n')
        text = self.asserted(self.OWN + second)
        assert text.count("static_assert") == 1
        assert "at::_ops::mode_values::schema" in text

    def test_in_place_forms_are_in_the_header_of_their_base(self) -> None:
        assert "#include <ATen/ops/put_ops.h>" in self.asserted(self.HOST.replace('"mode"', '"put_"'))

    def test_unknown_and_unnameable_kernels_get_no_assertion(self) -> None:
        assert self.asserted(self.HOST.replace('"mode"', '"modus"')) == ""
        assert self.asserted(f"namespace mine {{\n{self.HOST}}}\n") == ""


ARGUMENTS = """
void set_argument(id<MTLComputeCommandEncoder> encoder, NSUInteger index, const at::Tensor& tensor) {
  id<MTLBuffer> buffer = (__bridge id<MTLBuffer>)const_cast<void*>(tensor.storage().data());
  [encoder setBuffer:buffer offset:tensor.storage_offset() * tensor.element_size() atIndex:index];
  [encoder setBuffer:getMTLBufferStorage(tensor) offset:tensor.storage_offset() * 4 atIndex:index];
}
void set_argument(id<MTLComputeCommandEncoder> encoder, NSUInteger index, int64_t value) {
  id<MTLBuffer> scratch = [device newBufferWithLength:64 options:0];
  [encoder setBuffer:scratch offset:0 atIndex:index];
  [encoder setBytes:&value length:sizeof(value) atIndex:index];
  [encoder setBytes:&value length:sizeof(int64_t) atIndex:index];
}
"""


class TestEncodedArguments:
    def test_accepts_right_code(self) -> None:
        assert check_encoders(Path("a.h"), ARGUMENTS) == []

    @pytest.mark.parametrize(
        ("old", "new", "line", "message"),
        [
            (
                "buffer offset:tensor.storage_offset() * tensor.element_size()",
                "buffer offset:0",
                4,
                "the tensor tensor is",
            ),
            ("(tensor) offset:tensor.storage_offset() * 4", "(tensor) offset:0", 5, "the tensor tensor is bound from"),
            ("length:sizeof(value)", "length:sizeof(int32_t)", 10, "value is int64_t, and as many bytes as"),
        ],
    )
    def test_bytes_and_offsets(self, old: str, new: str, line: int, message: str) -> None:
        assert old in ARGUMENTS
        (finding,) = check_encoders(Path("a.h"), ARGUMENTS.replace(old, new))
        assert finding.line == line
        assert finding.message.startswith(message)

    def test_a_second_encoder(self) -> None:
        second = "id<MTLComputeCommandEncoder> other = [stream->commandBuffer() computeCommandEncoder];\n"
        (finding,) = check_encoders(Path("a.h"), SUPPORT + second)
        assert "a second encoder" in finding.message
        assert check_encoders(Path("a.h"), SUPPORT + "stream->endKernelCoalescing();\n" + second) == []
