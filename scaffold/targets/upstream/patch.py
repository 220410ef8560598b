"""Target `upstream`: a patch against PyTorch's tree, with the files that it adds beside it.

The two files of the tree that it changes ship in every wheel, so that the patch can be made, applied and judged without
the tree: native_functions.yaml and common_mps.py.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
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
from ...launches.aten_host import AtenHost
from ...launches.launch import Launch
from ...release_files import ReleaseFiles
from .. import Generated, Request
from ..regions import regions_of, with_regions
from ..rendering import render
from .dispatch_stubs import Stub, stub_for
from .expected_failures import without_entries
from .git_patch import added, changed
from .yaml_rows import entries_of, entry_of, rows_of, with_mps_rows

TREE_YAML = "aten/src/ATen/native/native_functions.yaml"
TREE_COMMON_MPS = "torch/testing/_internal/common_mps.py"


@dataclass(frozen=True)
class Tree:
    """What of a release's tree the patch changes or builds on.

    Attributes:
        native_functions: the text of native_functions.yaml.
        tags: the path of tags.yaml.
        common_mps: the text of common_mps.py, empty where the release does not ship it.
        include: the folder of torch's headers, where dispatch stubs are declared.
    """

    native_functions: str
    tags: Path
    common_mps: str
    include: Path


def tree_of(files: ReleaseFiles) -> Tree:
    """What a release's files say of its tree."""
    common_mps = files.common_mps.read_text("utf-8") if files.common_mps.is_file() else ""
    return Tree(files.native_functions.read_text("utf-8"), files.tags, common_mps, files.include)


@dataclass(frozen=True)
class _Native:
    """How a kernel is defined: the line before its body, and whether it is structured."""

    head: str
    structured: bool


@dataclass(frozen=True)
class _Registers:
    """The REGISTER_ line of a stub's functor in Metal."""

    macro: str
    name: str
    parameters: str
    first: str
    alpha: bool

    def line(self, metal: str) -> str:
        """The line for one Metal type."""
        types = (metal, metal, metal) if self.alpha else (metal, metal)
        return f"{self.macro}({self.name}, {', '.join(types)});"


def generate(request: Request, tree: Tree, existing: Callable[[str], str | None] = lambda _: None) -> Generated:
    """The patch, the new files in it, and a header for the checker.

    `existing`: the text of a file that an earlier run generated, so that what was written in it goes into the patch.
    Raises ScaffoldError when the yaml cannot take a row for an overload.
    """
    operator = request.operator
    stub = _stub(request, tree)
    rows = _rows(request, tree, stub)
    yaml_text = with_mps_rows(tree.native_functions, rows)
    groups = _groups(request, yaml_text, tree.tags)
    natives = [(AtenHost(launch), _native(launch, groups, rows)) for launch in request.launches]
    values = {
        "operator": operator,
        "kind": request.kind,
        "launches": request.launches,
        "base": request.base,
        "stub": stub,
        "executes": _executes(request, stub),
        "registers": _registers(request, stub),
        "natives": natives,
    }
    new_files = {
        f"aten/src/ATen/native/mps/operations/{operator.camel}.mm": render("upstream/kernel.mm.j2", **values),
        f"aten/src/ATen/native/mps/kernels/{operator.camel}.metal": render("upstream/kernel.metal.j2", **values),
        f"test/test_mps_{operator.stem}.py": render("upstream/test.py.j2", **values),
    }
    new_files = {path: _with_own(text, existing(f"tree/{path}"), path) for path, text in new_files.items()}
    common_mps = without_entries(tree.common_mps, request.opinfos) if tree.common_mps else ""
    patch = "".join(
        [
            changed(TREE_YAML, tree.native_functions, yaml_text),
            *(added(path, text) for path, text in new_files.items()),
            changed(TREE_COMMON_MPS, tree.common_mps, common_mps),
        ]
    )
    header = render(
        "upstream/native.h.j2",
        base=request.base,
        has_meta=any(group.structured for group in groups if isinstance(group, NativeFunctionsGroup)),
        declarations=_declarations(yaml_text, request, tree.tags),
    )
    files = {
        f"{operator.stem}.patch": patch,
        **{f"tree/{path}": text for path, text in new_files.items()},
        f"include/ATen/ops/{request.base}_native.h": header,
    }
    definitions = ("USE_MPS", "AT_PER_OPERATOR_HEADERS")
    return Generated(files, {}, arc=False, include=("include",), definitions=definitions)


def _stub(request: Request, tree: Tree) -> Stub | None:
    """The operator's dispatch stub, where all backends share the kernel that calls it."""
    if len(request.launches) != 1 or not request.kind.elementwise:
        return None
    name = request.launches[0].name
    rows = rows_of(tree.native_functions[slice(*entry_of(tree.native_functions, name))])
    shared = rows.get("CPU") is not None and rows.get("CPU") == rows.get("CUDA")
    return stub_for(request.operator.name, tree.include) if shared else None


def _rows(request: Request, tree: Tree, stub: Stub | None) -> dict[str, str]:
    """The kernel that each overload's row names."""
    rows = {}
    for launch in request.launches:
        there = rows_of(tree.native_functions[slice(*entry_of(tree.native_functions, launch.name))])
        own = f"{launch.id}_mps"
        if stub and "CPU" in there:
            rows[launch.name] = there["CPU"]
        else:
            rows[launch.name] = f"{launch.id}_metal" if own in there.values() else own
    return rows


_TAG_MISSING = re.compile(r"nondeterministic_seeded tag missing for (?P<overload>[\w.]+)")


def _parse(yaml_text: str, request: Request, tags: Path) -> ParsedYaml:
    return _parse_entries(entries_of(yaml_text, request.family), request, tags)


def _parse_entries(entries: str, request: Request, tags: Path) -> ParsedYaml:
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        path = Path(temporary) / "native_functions.yaml"
        path.write_text(entries)
        try:
            return parse_native_yaml(str(path), str(tags))
        except Exception as error:  # torchgen raises assertions and plain exceptions of many types
            # Tags change no declaration, and which operators need this one differs between releases of torchgen.
            found = _TAG_MISSING.match(str(error))
            if found and "tags:" not in entries_of(entries, [found["overload"]]):
                _, end = entry_of(entries, found["overload"])
                tagged = f"{entries[:end].rstrip()}\n  tags: nondeterministic_seeded\n\n{entries[end:]}"
                return _parse_entries(tagged, request, tags)
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ScaffoldError(
                f"the installed torchgen refuses {request.operator.full_name} of {request.operator.release}: {problem}"
            ) from None


def _groups(request: Request, yaml_text: str, tags: Path) -> Sequence[NativeFunction | NativeFunctionsGroup]:
    return _grouped(_parse(yaml_text, request, tags), request)


def _grouped(parsed: ParsedYaml, request: Request) -> Sequence[NativeFunction | NativeFunctionsGroup]:
    """The overloads as torchgen generates code for them: those of a structured kernel together, all others alone."""
    if not request.operator.structured:
        return tuple(parsed.native_functions)
    return tuple(get_grouped_native_functions(parsed.native_functions))


def _native(launch: Launch, groups: Sequence[NativeFunction | NativeFunctionsGroup], rows: dict[str, str]) -> _Native:
    """How PyTorch's build wants the kernel defined."""
    for group in groups:
        if isinstance(group, NativeFunctionsGroup) and group.structured and str(group.out.func.name) == launch.name:
            arguments = ", ".join(binding.decl() for binding in structured.impl_arguments(group))
            return _Native(f"TORCH_IMPL_FUNC({rows[launch.name]})({arguments})", structured=True)
    for group in groups:
        for function in group.functions() if isinstance(group, NativeFunctionsGroup) else [group]:
            if str(function.func.name) == launch.name:
                with local.parametrize(use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False):
                    signature = NativeSignature(function.func, symint=False)
                    return _Native(signature.defn(rows[launch.name]), structured=False)
    raise ScaffoldError(f"torchgen does not know {launch.name}")


def _declarations(yaml_text: str, request: Request, tags: Path) -> list[str]:
    """The lines of the operator's native header for the kernels of mps, as torchgen writes them."""
    parsed = _parse(yaml_text, request, tags)
    index = parsed.backend_indices[DispatchKey.MPS]
    lines: list[str] = []
    for group in _grouped(parsed, request):
        with native_function_manager(group):
            lines += compute_native_function_declaration(group, index)
    return [line for line in dict.fromkeys(lines) if line]


def _executes(request: Request, stub: Stub | None) -> str:
    """The helper of MetalShaderLibrary that runs the stub's kernel; empty where none fits."""
    if stub is None or not stub.takes_scalars or len(stub.parameters) > 1:
        return ""
    inputs = len(request.launches[0].inputs)
    return {1: "exec_unary_kernel", 2: "exec_binary_kernel"}.get(inputs, "")


def _registers(request: Request, stub: Stub | None) -> _Registers | None:
    """The macro that instantiates the functor of a stub's kernel."""
    if stub is None or not _executes(request, stub):
        return None
    inputs = [buffer.name for buffer in request.launches[0].inputs]
    alpha = bool(stub.parameters)
    names = [*inputs, *(["alpha"] if alpha else [])]
    macro = f"REGISTER_{'UNARY' if len(inputs) == 1 else 'BINARY'}{'_ALPHA' if alpha else ''}_OP"
    parameters = ", ".join(f"const T {name}" for name in names)
    return _Registers(macro, request.operator.stem, parameters, inputs[0], alpha)


def _with_own(text: str, existing: str | None, path: str) -> str:
    return with_regions(text, regions_of(existing, path), path)[0] if existing else text
