"""Asks torchgen how PyTorch's build requires kernels to be defined and declared, given the patched yaml."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchgen import local
from torchgen.api import structured
from torchgen.api.types import NativeSignature
from torchgen.context import native_function_manager
from torchgen.dest.native_functions import compute_native_function_declaration
from torchgen.gen import ParsedYaml, get_grouped_native_functions, parse_native_yaml
from torchgen.model import DispatchKey, NativeFunction, NativeFunctionsGroup

from ...errors import ScaffoldError
from ...operators.model import OperatorModel

_TAG_MISSING = re.compile(r"nondeterministic_seeded tag missing for (?P<overload>[\w.]+)")
_Groups = Sequence[NativeFunction | NativeFunctionsGroup]


@dataclass(frozen=True)
class KernelHead:
    """The start of a kernel's definition.

    Attributes:
        line: the text before its body.
        structured: whether it is structured.
        precomputed: a line for each list that the meta function passes as separate numbers: it makes the list again.
    """

    line: str
    structured: bool
    precomputed: tuple[str, ...] = ()


@dataclass(frozen=True)
class NativeCode:
    """The heads of an operator's kernels by overload, and its native header.

    `has_meta`: whether the header needs the meta functions of a structured kernel.
    """

    heads: Mapping[str, KernelHead]
    declarations: tuple[str, ...]
    has_meta: bool


def native_code(operator: OperatorModel, entries: str, tags: Path, kernels: Mapping[str, str]) -> NativeCode:
    """Ask torchgen.

    `entries`: the operator's part of the yaml, with its MPS rows; `kernels`: the name of each overload's kernel.
    Raises ScaffoldError when the installed torchgen refuses the entries.
    """
    parsed = _parsed(operator, entries, tags)
    # The overloads as torchgen generates code for them: those of a structured kernel together, all others alone.
    functions = parsed.native_functions
    groups: _Groups = tuple(get_grouped_native_functions(functions) if operator.structured else functions)
    index = parsed.backend_indices[DispatchKey.MPS]
    declarations: list[str] = []
    for group in groups:
        with native_function_manager(group):
            declarations += compute_native_function_declaration(group, index)
    return NativeCode(
        heads={overload: _head(overload, kernel, groups) for overload, kernel in kernels.items()},
        declarations=tuple(line for line in dict.fromkeys(declarations) if line),
        has_meta=any(group.structured for group in groups if isinstance(group, NativeFunctionsGroup)),
    )


def _parsed(operator: OperatorModel, entries: str, tags: Path) -> ParsedYaml:
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        path = Path(temporary) / "native_functions.yaml"
        path.write_text(entries)
        try:
            return parse_native_yaml(str(path), str(tags))
        except Exception as error:  # torchgen raises assertions and plain exceptions of many types
            # Tags change no declaration, and which operators need this one differs between releases of torchgen.
            missing = _TAG_MISSING.match(str(error))
            tagged = _with_tag(entries, missing["overload"]) if missing else entries
            if tagged != entries:
                return _parsed(operator, tagged, tags)
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ScaffoldError(
                f"the installed torchgen refuses {operator.full_name} of {operator.release}: {problem}"
            ) from None


def _with_tag(entries: str, overload: str) -> str:
    """The entries, with the tag `nondeterministic_seeded` added to the overload's entry if that has no tags."""
    entry = re.search(rf"^- func: {re.escape(overload)}\(.*\n(?:[ ]+.*\n)*", entries, re.MULTILINE)
    if entry is None or "tags:" in entry[0]:
        return entries
    return f"{entries[: entry.end()]}  tags: nondeterministic_seeded\n{entries[entry.end() :]}"


def _array_definitions(group: NativeFunctionsGroup) -> tuple[str, ...]:
    parts = group.out.precomputed.replace if group.out.precomputed else {}
    return tuple(
        f"const std::array<int64_t, {len(numbers)}> {name} = {{{', '.join(argument.name for argument in numbers)}}};"
        for name, numbers in parts.items()
        if len(numbers) > 1 and all(str(argument.type) == "int" for argument in numbers)
    )


def _head(overload: str, kernel: str, groups: _Groups) -> KernelHead:
    """The definition that PyTorch's build requires for the kernel of an overload."""
    for group in groups:
        if isinstance(group, NativeFunctionsGroup) and group.structured and str(group.out.func.name) == overload:
            arguments = ", ".join(binding.decl() for binding in structured.impl_arguments(group))
            head = f"TORCH_IMPL_FUNC({kernel})({arguments})"
            return KernelHead(head, structured=True, precomputed=_array_definitions(group))
    for group in groups:
        for function in group.functions() if isinstance(group, NativeFunctionsGroup) else [group]:
            if str(function.func.name) == overload:
                with local.parametrize(use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False):
                    signature = NativeSignature(function.func, symint=False)
                    return KernelHead(signature.defn(kernel), structured=False)
    raise ScaffoldError(f"torchgen does not know {overload}")
