"""Target `upstream`: a patch against PyTorch's tree, with the files that it adds beside it.

Every wheel has the files that the patch changes, so no checkout is needed to generate, apply and check it:
native_functions.yaml, common_mps.py, and common_methods_invocations.py for an operator without an OpInfo.
The tests beside the patch are for its author; upstream, PyTorch's OpInfo tests cover the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from torchgen.model import ListType

from ....registry.torch_release import is_older
from ...launches.upstream_host import UpstreamHost, in_at_native
from ...release_files import ReleaseFiles
from .. import Generated, Request
from ..regions import merged
from ..rendering import render
from ..testing import files_of_tests
from .dispatch_stubs import Stub, stub_of
from .expected_failures import without_entries
from .git_patch import added, changed
from .native_code import native_code
from .opinfo_entry import with_opinfo
from .source_form import folded, without_marks
from .yaml_rows import entries_of, mps_kernels, rows_by_overload, with_mps_rows

TREE_YAML = "aten/src/ATen/native/native_functions.yaml"
TREE_COMMON_MPS = "torch/testing/_internal/common_mps.py"
TREE_OPINFOS = "torch/testing/_internal/common_methods_invocations.py"
# Older releases also build a Metal library for systems without bfloat.
_BFLOAT_EVERYWHERE = "2.9.0"


@dataclass(frozen=True)
class Tree:
    """The files of a release's tree that a patch changes or uses.

    Attributes:
        native_functions: the text of native_functions.yaml.
        tags: the path of tags.yaml.
        common_mps, opinfos: the text of common_mps.py and common_methods_invocations.py, "" if they are missing.
        include: the folder of torch's headers, where dispatch stubs are declared.
    """

    native_functions: str
    tags: Path
    common_mps: str
    opinfos: str
    include: Path


def tree_of(files: ReleaseFiles) -> Tree:
    """The tree of a release."""
    common_mps, opinfos = [
        path.read_text("utf-8") if path.is_file() else "" for path in (files.common_mps, files.opinfos)
    ]
    return Tree(files.native_functions.read_text("utf-8"), files.tags, common_mps, opinfos, files.include)


def generate(request: Request, tree: Tree, existing: Callable[[str], str | None] = lambda _: None) -> Generated:
    """The patch, the new files in it, and a header for the checker.

    `existing`: the text of an earlier generated file, whose hand-written regions go into the patch.
    Raises ScaffoldError when the yaml cannot take a row for an overload.
    """
    operator = request.operator
    rows = rows_by_overload(tree.native_functions, [launch.name for launch in request.launches])
    stub = stub_of(request, rows, tree.include)
    kernels = mps_kernels(rows, shared=stub is not None)
    yaml_text = with_mps_rows(tree.native_functions, kernels)
    native = native_code(operator, entries_of(yaml_text, request.family), tree.tags, kernels)
    first = request.launches[0]
    inputs = [buffer.name for buffer in first.inputs]
    natives = [
        (UpstreamHost(launch, shaped=head.structured), replace(head, line=in_at_native(head.line)))
        for launch in request.launches
        for head in [native.heads[launch.name]]
    ]
    lines = "\n".join(line for host, _ in natives for line in _lines_of(host))
    values = {
        "operator": operator,
        "kind": request.kind,
        "launches": request.launches,
        "base": request.base,
        "stub": stub,
        "executes": stub.helper(inputs) if stub else "",
        "registers": stub.functor(inputs, operator.stem) if stub else None,
        "scalars": [first.argument(buffer) for buffer in first.numbers] or ["alpha"],
        "natives": natives,
        "kernels": kernels,
        "rows_used": [*_rows_used(lines), *(["flags"] if _has_flags(request) else [])],
        "headers": _headers(lines, stub),
        "per_operator": [*(["empty"] if "at::empty(" in lines else []), f"{request.base}_native"],
        "is_bfloat_optional": is_older(request.operator.release, _BFLOAT_EVERYWHERE),
    }
    new_files = {
        f"aten/src/ATen/native/mps/operations/{operator.camel}.mm": folded(render("upstream/kernel.mm.j2", **values)),
        f"aten/src/ATen/native/mps/kernels/{operator.camel}.metal": folded(
            render("upstream/kernel.metal.j2", **values)
        ),
    }
    for path, text in new_files.items():
        if before := existing(f"tree/{path}"):
            new_files[path] = merged(text, before, path).text
    common_mps = without_entries(tree.common_mps, request.opinfos) if tree.common_mps else ""
    opinfos = tree.opinfos if request.opinfos else with_opinfo(tree.opinfos, operator)
    patch = "".join(
        [
            changed(TREE_YAML, tree.native_functions, yaml_text),
            *(added(path, without_marks(text)) for path, text in new_files.items()),
            changed(TREE_COMMON_MPS, tree.common_mps, common_mps),
            changed(TREE_OPINFOS, tree.opinfos, opinfos),
        ]
    )
    header = render(
        "upstream/native.h.j2", base=request.base, has_meta=native.has_meta, declarations=native.declarations
    )
    files = {
        f"{operator.stem}.patch": patch,
        **{f"tree/{path}": text for path, text in new_files.items()},
        f"include/ATen/ops/{request.base}_native.h": header,
        **files_of_tests(request, "tests", "patch"),
    }
    definitions = ("USE_MPS", "AT_PER_OPERATOR_HEADERS")
    return Generated(files, {}, arc=False, include=("include",), definitions=definitions)


def _has_flags(request: Request) -> bool:
    """Whether a list of bools is bound."""
    kinds = [argument.type for launch in request.launches for argument in launch.overload.inputs]
    return any(isinstance(kind, ListType) and str(kind.elem) == "bool" for kind in kinds)


def _lines_of(host: UpstreamHost) -> list[str]:
    if host.launch.served_by:
        return host.served(host.launch.served_by)
    return [*host.prepared, host.threads, *host.bound, *host.finished]


def _rows_used(lines: str) -> list[str]:
    """The helper functions for rows and lists that these lines of host code need."""
    called = [
        name
        for name in ("number_of", "matrix_count", "list_of", "dims", "rows_of", "from_rows", "reduced_shape")
        if f"{name}(" in lines
    ]
    return ["rows_last", *called] if {"rows_of", "from_rows", "reduced_shape"} & {*called} else called


def _headers(lines: str, stub: Stub | None) -> list[str]:
    """The headers of the host code, in the order that PyTorch's formatting keeps."""
    if stub is not None:
        return ["ATen/TensorIterator.h", stub.header, "ATen/native/mps/OperationUtils.h"]
    calls = {
        "ATen/ExpandUtils.h": ("infer_size(",),
        "ATen/native/ReduceOpsUtils.h": ("get_reduction_shape",),
        "ATen/native/ReductionType.h": ("get_reduction_enum",),
        "ATen/native/Resize.h": ("resize_output",),
    }
    used = [header for header, names in calls.items() if any(name in lines for name in names)]
    return sorted([*used, "ATen/mps/MPSProfiler.h", "ATen/native/mps/OperationUtils.h"])
