"""Assertions that each registered kernel has the signature of its schema, unless the file asserts that itself.

`TORCH_FN` calls a function with the arguments of the schema, whatever the function takes: at best a wrong signature
is refused at load time. Only the compiler has both types, so the assertions are compiled.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

_BLOCK = re.compile(
    r"\bTORCH_LIBRARY_IMPL\s*\(\s*aten\s*,\s*\w+\s*,\s*\w+\s*\)\s*\{(?P<body>.*?)^\}", re.DOTALL | re.MULTILINE
)
_REGISTERED = re.compile(
    r'\.impl\s*\(\s*"(?:aten::)?(?P<name>[\w.]+)"\s*,\s*(?:TORCH_FN\s*\(\s*|&)(?P<function>\w+)\s*\)'
)


def signature_assertions(path: Path, text: str, existing: Collection[str]) -> str:
    """The lines to compile after a file's text; empty if there is nothing to assert.

    `existing`: the overloads that exist; others have no schema to compare with, and are reported separately.
    """
    if re.search(r"^\s*namespace\b", text, re.MULTILINE):
        return ""  # code after the file's text cannot name a function in a namespace
    lines = []
    for block in _BLOCK.finditer(text):
        for match in _REGISTERED.finditer(block["body"]):
            name, function = match["name"], match["function"]
            identifier = name.replace(".", "_")
            own = re.search(rf"decltype\(\s*&?{function}\s*\)[^;]*at::_ops::{identifier}::schema", text)
            if own or name not in existing:
                continue
            base = re.sub(r"(?<=[^_])_$", "", name.partition(".")[0])
            line = text.count("\n", 0, block.start("body") + match.start()) + 1
            lines += [
                f"#include <ATen/ops/{base}_ops.h>",
                f'#line {line} "{path}"',
                f"static_assert(std::is_same_v<decltype({function}), "
                f"c10::fn_remove_symint<at::_ops::{identifier}::schema>::type>, "
                f'"{function} has another signature than aten::{name}");',
            ]
    return "".join(f"{line}\n" for line in ["#include <ATen/core/boxing/KernelFunction.h>", *lines]) if lines else ""
