"""Generates declarations and registrations for mps from native_functions.yaml with torchgen, like PyTorch's build."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from torchgen.dest import RegisterDispatchKey, gen_registration_helpers
from torchgen.dest.native_functions import compute_native_function_declaration
from torchgen.gen import ParsedYaml, get_grouped_native_functions, parse_native_yaml
from torchgen.model import BackendIndex, DispatchKey, FunctionSchema, NativeFunction, NativeFunctionsGroup
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target

from ..errors import UpstreamError

_ENTRY = re.compile(r"^(?=- func: )", re.MULTILINE)
_SCHEMA = re.compile(r"- func: (.*)")
# Of older releases, none of mps: their arguments have names, and their results forms, that torchgen takes no more.
_REFUSED = ("can_cast(", "_nested_tensor_")
_TAGS = re.compile(r"^  tags: ([^#\n]*).*$", re.MULTILINE)
_SEEDED = "nondeterministic_seeded"
_NAME = re.compile(r"- func: (?P<operator>\w+)")
# The helpers of structured kernels make their outputs with a function that torch has on macOS only.
_EMPTY = re.compile(r"at::detail::(empty(?:_strided)?)_mps")

# The lines up to the first empty one are precompiled once for all such files: no header that a tree changes is in them.
_REGISTRATIONS = """\
#include <ATen/DeviceGuard.h>
#include <ATen/Tensor.h>
#include <ATen/native/Resize.h>
#include <c10/util/ExclusivelyOwned.h>
#include <torch/library.h>

#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
{headers}

namespace at {{
namespace {{
{helpers}
{definitions}
TORCH_LIBRARY_IMPL(aten, MPS, m) {{
{registrations}
}}
}} // namespace
}} // namespace at
"""
_HEADER = """\
#pragma once
{base}

namespace at::native {{
{declarations}
}} // namespace at::native
"""
_OWN_BASE = "#include <ATen/core/Tensor.h>\n#include <optional>\n#include <tuple>\n#include <vector>"

Group: TypeAlias = NativeFunction | NativeFunctionsGroup


@dataclass(frozen=True)
class MpsKernel:
    """The kernel that native_functions.yaml names for an overload on mps.

    `shared`: whether other backends have the same kernel, which is compiled into torch and calls a dispatch stub.
    `base`: the name of the operator's headers.
    """

    overload: str
    function: str
    shared: bool
    base: str


class MpsYaml:
    """The rows for mps of a native_functions.yaml.

    `operators`: read only their entries and those that torchgen groups with them; None for all.
    Raises UpstreamError when torchgen refuses the text.
    """

    def __init__(self, text: str, tags: Path, operators: Collection[str] | None = None) -> None:
        self._parsed = _parsed(text if operators is None else _entries(text, operators), tags)

    @cached_property
    def _index(self) -> BackendIndex:
        return self._parsed.backend_indices[DispatchKey.MPS]

    def _index_of(self, overloads: Collection[str]) -> BackendIndex:
        """The rows of some overloads."""
        rows = {name: metadata for name, metadata in self._index.index.items() if str(name) in overloads}
        return replace(self._index, index=rows)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All functions, structured ones as torchgen groups them."""
        return tuple(get_grouped_native_functions(self._parsed.native_functions))

    @cached_property
    def kernels(self) -> tuple[MpsKernel, ...]:
        """Every overload with a row for mps."""
        cpu = self._parsed.backend_indices[DispatchKey.CPU]
        kernels = []
        for function in self._parsed.native_functions:
            row = self._index.get_kernel(function)
            if row is not None:
                other = cpu.get_kernel(function)
                shared = other is not None and other.kernel == row.kernel
                kernels.append(MpsKernel(str(function.func.name), row.kernel, shared, _base(function)))
        return tuple(kernels)

    def headers(self, include: Path) -> dict[str, str]:
        """The native headers of the overloads that have rows, by their path below the include folder.

        Each includes torch's own header, which is in the folder `include` and was generated without mps.
        """
        by_base: dict[str, list[str]] = {}
        for group in self.groups:
            lines = compute_native_function_declaration(group, self._index)
            first = next(iter(group.functions())) if isinstance(group, NativeFunctionsGroup) else group
            by_base.setdefault(_base(first), []).extend(line for line in lines if line)
        texts = {}
        for base, lines in by_base.items():
            if not lines:
                continue
            name = f"ATen/ops/{base}_native.h"
            own = include / name
            declared = own.read_text("utf-8") if own.is_file() else ""
            fresh = [line for line in dict.fromkeys(lines) if _structure(line) not in declared]
            texts[name] = _HEADER.format(
                base=f"#include_next <{name}>" if declared else _OWN_BASE, declarations="\n".join(fresh)
            )
        return texts

    def registrations(self, overloads: Collection[str]) -> str:
        """C++ that registers the kernels of some overloads, structured ones with all their forms."""
        index = self._index_of(overloads)  # the other kernels of mps stay as they are
        groups = [group for group in self.groups if _has_kernel(group, index)]
        bases = sorted({_base(next(iter(_functions(group)))) for group in groups})
        definitions = _generated(index, Target.ANONYMOUS_DEFINITION, groups)
        return _REGISTRATIONS.format(
            headers="\n".join(f"#include <ATen/ops/{base}_native.h>" for base in bases),
            helpers=_EMPTY.sub(r"at::\1", "\n".join(gen_registration_helpers(index))),
            definitions="\n".join(definitions).replace("at::native::", "::at::native::"),
            registrations="\n".join(_generated(index, Target.REGISTRATION, groups)),
        )


def _generated(index: BackendIndex, target: Target, groups: Sequence[Group]) -> list[str]:
    generator = RegisterDispatchKey(
        index,
        target,
        SelectiveBuilder.get_nop_selector(),
        rocm=False,
        symint=True,
        class_method_name=None,
        skip_dispatcher_op_registration=False,
    )
    return [text for group in groups for text in generator(group) if text]


def _functions(group: Group) -> list[NativeFunction]:
    return list(group.functions()) if isinstance(group, NativeFunctionsGroup) else [group]


def _has_kernel(group: Group, index: BackendIndex) -> bool:
    return any(index.has_kernel(function) for function in _functions(group))


def _base(function: NativeFunction) -> str:
    name = function.func.name.name
    return f"__{name.base}__" if name.dunder_method else name.base


def _structure(declaration: str) -> str:
    """The text that identifies a declaration in a header: the head of a structure, or all of it."""
    head = re.match(r"\s*(struct TORCH_API \w+)", declaration)
    return f"{head[1]} " if head else declaration


def _is_known(entry: str) -> bool:
    """Whether an entry uses nothing that newer releases removed: types, and constant references of outputs."""
    schema = _SCHEMA.match(entry)
    if schema is None:
        return True
    if schema[1].startswith(_REFUSED):
        return False
    try:
        outputs = FunctionSchema.parse(schema[1].strip()).arguments.out
    except Exception:  # torchgen raises assertions and plain exceptions of many types
        return False
    return not (outputs and "use_const_ref_for_mutable_tensors: True" in entry)


def _seeded(entry: str) -> str:
    """An entry with the tag for random results, which torchgen now requires and older releases did not have."""
    if _SEEDED in entry or not _NAME.match(entry):
        return entry
    if tags := _TAGS.search(entry):
        return f"{entry[: tags.start()]}  tags: [{tags[1].strip('[] ')}, {_SEEDED}]{entry[tags.end() :]}"
    head, _, rest = entry.partition("\n")
    return f"{head}\n  tags: {_SEEDED}\n{rest}"


def _entries(text: str, operators: Collection[str]) -> str:
    bases = {operator.strip("_") for operator in operators}
    entries = _ENTRY.split(text)
    return "".join(entry for entry in entries if (name := _NAME.match(entry)) and name["operator"].strip("_") in bases)


def _parsed(text: str, tags: Path) -> ParsedYaml:
    """The entries; if torchgen refuses some, as in an older release, only those without removed features."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        path = Path(temporary) / "native_functions.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            return parse_native_yaml(str(path), str(tags))
        except Exception as error:  # torchgen raises assertions and plain exceptions of many types
            supported = "".join(map(_seeded, filter(_is_known, _ENTRY.split(text))))
            if supported != text:
                return _parsed(supported, tags)
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UpstreamError(f"the installed torchgen refuses native_functions.yaml: {problem}") from None
