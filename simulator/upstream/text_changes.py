"""What the text of older releases needs changed for the headers of the installed torch and this machine's compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class TextChange:
    """A replacement in the text of host code, and why it is needed. A change that finds nothing does nothing."""

    old: str
    new: str
    reason: str


CHANGES = (
    TextChange(
        "#include <ATen/ops/sign_mps_dispatch.h>",
        "#include <ATen/ops/sign.h>",
        "torch for Linux has no functions of the namespace at::mps",
    ),
    TextChange(
        "[MPSCommandBuffer commandBufferFromCommandQueue:_commandQueue].retain",
        "[[MPSCommandBuffer alloc] initWithCommandBuffer:[(id)_commandQueue simulatedStreamCommandBuffer]]",
        "copies of the simulated device do not wait for the stream: its commands run when they are encoded",
    ),
    TextChange(
        "set_current_seed(uint64_t seed) override;\n  uint64_t current_seed() const override;",
        "set_current_seed(uint64_t seed) override; void set_offset(uint64_t) override {} "
        "uint64_t get_offset() const override { return 0; }\n  uint64_t current_seed() const override;",
        "a generator of torch has an offset since 2.2",
    ),
    TextChange(
        "new_state.data<uint8_t>()",
        "new_state.data_dtype_initialized<uint8_t>()",
        "torch removed the function of the older name",
    ),
    TextChange(
        "host_dst = dst.storage().data()",
        "host_dst = dst.storage().mutable_data()",
        "a storage gives constant data since 2.1",
    ),
    TextChange(
        "static_cast<char *>(src.storage().data())",
        "static_cast<const char *>(src.storage().data())",
        "a storage gives constant data since 2.1",
    ),
    TextChange(
        "inline ScalarType get_dtype_from_self(",
        "[[maybe_unused]] inline ScalarType dtype_of_self_or_given(",
        "torch's own headers have that function since 2.1",
    ),
    TextChange(
        "#include <objc/NSObjCRuntime.h>", "#import <Foundation/Foundation.h>", "it is a part of Foundation here"
    ),
    TextChange(
        "if (auto rc = cache_->LookUpAs<T>(key)) {\n    return rc;",
        "if (auto rc = cache_->LookUpAs<T>(key)) {\n    if (mpsgraph_simulator_checks_caches()) { "
        "T other(mps::make_mps_graph()); instantiate(other.graph(), &other); "
        "mpsgraph_simulator_compare(rc->graph(), other.graph()); } return rc;",
        "a key that forgets an argument gives this call the graph of another one",
    ),
    TextChange(
        "\nPlaceholder::Placeholder(",
        '\nextern "C" void mpsgraph_simulator_note_gathered(const void*); Placeholder::Placeholder(',
        "for the next two",
    ),
    TextChange(
        "_tensor = gatherViewTensor(src, emptyShell);",
        "_tensor = gatherViewTensor(src, emptyShell); "
        "if (_tensor.has_storage()) mpsgraph_simulator_note_gathered(_tensor.storage().data());",
        "a result that goes into the gathered copy of a view is lost: no one else has that copy",
    ),
    TextChange(
        "_tensor = src.clone(MemoryFormat::Contiguous);",
        "{ _tensor = src.clone(MemoryFormat::Contiguous); "
        "mpsgraph_simulator_note_gathered(_tensor.storage().data()); }",
        "the same",
    ),
    TextChange("const auto C10_UNUSED ", "[[maybe_unused]] const auto ", "the macro is an attribute now"),
    TextChange("c10::in_place", "std::in_place", "torch removed its own name for it"),
    TextChange("at::mps::sign_outf(", "at::sign_outf(", "torch for Linux has no functions of the namespace at::mps"),
)

# The type of int64_t on macOS, which is another one here, of the same size.
_INT64_OF_MACOS = re.compile(r"\blong\s+long\b")
# A format in a variable: fmt checks formats at compile time since C++20, and this one is known at run time.
_FORMAT = re.compile(r"\bfmt::format\((\w+(?: \? \w+ : \w+)?),")


def changed_text(text: str) -> str:
    """The text with all changes, line for line, and with int64_t as it is spelled on this machine."""
    for change in CHANGES:
        text = text.replace(change.old, change.new)
    return _FORMAT.sub(r"fmt::format(fmt::runtime(\1),", _INT64_OF_MACOS.sub("long", text))
