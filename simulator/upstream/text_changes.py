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
        "fmt::format(shaderSource,",
        "fmt::format(fmt::runtime(shaderSource),",
        "fmt checks formats at compile time since C++20, and this one is known at run time",
    ),
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
    TextChange("at::mps::sign_outf(", "at::sign_outf(", "torch for Linux has no functions of the namespace at::mps"),
)

# The type of int64_t on macOS, which is another one here, of the same size.
_INT64_OF_MACOS = re.compile(r"\blong\s+long\b")


def changed_text(text: str) -> str:
    """The text with all changes, line for line, and with int64_t as it is spelled on this machine."""
    for change in CHANGES:
        text = text.replace(change.old, change.new)
    return _INT64_OF_MACOS.sub("long", text)
