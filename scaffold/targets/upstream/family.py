"""A finished family of mpsmith's kernels as a patch against PyTorch's tree.

The Metal source is the family's own, moved; with it goes what its host code launches of other families, where
`kernels/FAMILY/upstream.metal` says so. Its host code is `kernels/FAMILY/upstream.mm` where there is one; for
elementwise functors it is generated: they go through PyTorch's own elementwise kernels and dispatch stubs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....kernels.runtime import catalog
from ....kernels.verification.source import calls_of
from ....simulator.upstream.operations import defines
from ...errors import NothingToPatchError, ScaffoldError
from ...operators.model import OperatorModel
from ...operators.source import Source
from .. import Generated, base_of
from ..rendering import render
from .dispatch_stubs import Stub, stub_for
from .evidence import FamilyEvidence
from .expected_failures import narrowed, with_complex
from .family_metal import elementwise_functors, moved
from .family_rows import FamilyRows, planned_rows
from .git_patch import added, changed
from .host_file import host_file
from .native_code import NativeCode, native_code
from .patch import TREE_COMMON_MPS, TREE_YAML, Tree
from .yaml_rows import entries_of, with_mps_rows

DEFINITIONS = ("USE_MPS", "AT_PER_OPERATOR_HEADERS")


@dataclass(frozen=True)
class FamilyPatch:
    """A patch, its files, and what it does.

    Attributes:
        family: the family's name.
        operators: the operators that it serves, as the release has them.
        rows: what becomes of each overload.
        generated: the files: the patch, its description, the tree's new files and headers for the checker.
        host: the path of the host code in the tree; empty where the patch has none.
        native_functions: the text of native_functions.yaml with the rows.
    """

    family: str
    operators: tuple[OperatorModel, ...]
    rows: FamilyRows
    generated: Generated
    host: str
    native_functions: str


def family_of(operator: str) -> str:
    """The family that serves an operator. Raises UnknownKernelError for one without a kernel."""
    return catalog.named([operator])[0].family


def in_patches(kernel: catalog.Kernel) -> bool:
    """Whether rows and new files alone can bring a kernel into PyTorch's tree."""
    return kernel.applies is None and not kernel.composite


def opinfos_of(family: str) -> tuple[str, ...]:
    """The OpInfos that a family's cases are named after; cases of functions without one are left out.

    Calls that replace a kernel of torch's for some inputs only say nothing about the lists of what fails.
    """
    from ...operators.opinfos import named, opinfos_for

    served = {kernel.operator for kernel in catalog.family(family) if kernel.applies is None}
    names = [call.name for call in calls_of(family) if not served.isdisjoint(call.operators)]
    for operator in sorted(served):
        names += opinfos_for(operator.removeprefix("aten::")).names
    return tuple(dict.fromkeys(name for name in names if named(name)))


def generate(family: str, source: Source, tree: Tree, evidence: FamilyEvidence | None = None) -> FamilyPatch:
    """The patch of a family.

    `evidence`: what its kernels showed; without it the lists of expected failures stay as they are.
    Raises:
        NothingToPatchError: the release has kernels for all that the family serves.
        ScaffoldError: host code is missing. UnknownKernelError: the name is no family.
    """
    overloads = _served(family, source)
    operators = _operators(overloads, source)
    camel = _camel(family)
    host = _host_code(family, operators, camel, tree)
    rows = planned_rows(tree.native_functions, overloads, host)
    if not rows.kernels:
        raise NothingToPatchError(
            f"torch {source.release} has kernels on mps for all that {family} serves: nothing to patch"
        )
    yaml_text = with_mps_rows(tree.native_functions, rows.kernels)
    natives = {
        operator.name: native_code(operator, entries_of(yaml_text, _entries(operator)), tree.tags, chosen)
        for operator in operators
        if (chosen := {name: rows.kernels[name] for name in _names(operator) if name in rows.kernels})
    }
    if host:
        _require_heads(family, host, rows, natives)
    places = {} if host is None or not _needs_host(rows, host) else _places(family, camel, host)
    new_files = {**places, f"test/test_mps_{family}.py": _tests(family, camel, rows)}
    common_mps = _common_mps(tree.common_mps, evidence)
    patch = "".join(
        [
            changed(TREE_YAML, tree.native_functions, yaml_text),
            *(added(path, text) for path, text in new_files.items()),
            changed(TREE_COMMON_MPS, tree.common_mps, common_mps),
        ]
    )
    files = {
        f"{family}.patch": patch,
        "description.md": _description(family, source, rows, evidence, tuple(places)),
        **{f"tree/{path}": text for path, text in new_files.items()},
        **_headers(operators, natives),
    }
    registers: dict[str, str] = {}
    generated = Generated(files, registers, arc=False, include=("include",), definitions=DEFINITIONS)
    host_path = next((path for path in places if path.endswith(".mm")), "")
    return FamilyPatch(family, operators, rows, generated, host_path, yaml_text)


def _served(family: str, source: Source) -> list[str]:
    """The overloads that the family's own table names, as far as the release has them.

    Those that override a kernel of torch's, or an operator that torch itself makes of others, are no part of it.
    """
    names = [kernel.overload.removeprefix("aten::") for kernel in catalog.family(family) if in_patches(kernel)]
    known = {function.name for functions in source.by_operator.values() for function in functions}
    served = [name for name in names if name in known]
    if not served:
        raise ScaffoldError(f"torch {source.release} has no operator that {family} serves")
    return served


def _operators(overloads: Sequence[str], source: Source) -> tuple[OperatorModel, ...]:
    names = dict.fromkeys(overload.partition(".")[0] for overload in overloads)
    return tuple(source.operator(name) for name in names)


def _names(operator: OperatorModel) -> list[str]:
    return [overload.name for overload in operator.overloads]


def _entries(operator: OperatorModel) -> list[str]:
    """The overloads that torchgen groups: the operator's and its twin's."""
    return list(dict.fromkeys([*_names(operator), *operator.relatives]))


def _camel(family: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in family.split("_"))


def metal_of(family: str) -> Path:
    """The Metal file that a patch of the family moves into PyTorch's tree."""
    folder = catalog.folder_of(family)
    more = folder / "upstream.metal"
    return more if more.is_file() else folder / f"{family}.metal"


def _host_code(family: str, operators: Sequence[OperatorModel], camel: str, tree: Tree) -> str | None:
    """The family's own host code, or that of its elementwise functors; None where there is neither."""
    own = catalog.folder_of(family) / "upstream.mm"
    if own.is_file():
        return host_file(own, camel, [operator.name for operator in operators])
    functors = {functor.name: functor for functor in elementwise_functors(metal_of(family))}
    stubs: list[tuple[OperatorModel, Stub, int]] = []
    for operator in operators:
        stub = stub_for(operator.name, tree.include)
        if operator.name not in functors or stub is None or stub.parameters:
            return None
        stubs.append((operator, stub, functors[operator.name].operands))
    return render("upstream/family.mm.j2", camel=camel, stubs=stubs)


def _needs_host(rows: FamilyRows, host: str) -> bool:
    """Whether a row names what the host code defines, or fills a stub."""
    return any(defines(host, kernel) for kernel in rows.kernels.values()) or "REGISTER_DISPATCH(" in host


def _require_heads(family: str, host: str, rows: FamilyRows, natives: Mapping[str, NativeCode]) -> None:
    """Raise ScaffoldError where a kernel is defined in another way than PyTorch's build wants it: structured or not."""
    for native in natives.values():
        for overload, head in native.heads.items():
            kernel = rows.kernels[overload]
            if overload not in rows.shared and head.structured != (f"TORCH_IMPL_FUNC({kernel})" in host):
                raise ScaffoldError(
                    f"kernels/{family}/upstream.mm defines {kernel} in another way than torch asks for: {head.line}"
                )


def _places(family: str, camel: str, host: str) -> dict[str, str]:
    return {
        f"aten/src/ATen/native/mps/operations/{camel}.mm": host,
        f"aten/src/ATen/native/mps/kernels/{camel}.metal": moved(metal_of(family)),
    }


def _tests(family: str, camel: str, rows: FamilyRows) -> str:
    return render("upstream/family_test.py.j2", family=family, camel=camel, overloads=list(rows.kernels))


def _common_mps(text: str, evidence: FamilyEvidence | None) -> str:
    """The lists of expected failures, without what the evidence shows to run."""
    if not text or evidence is None:
        return text
    from ...operators.opinfos import supported_dtypes

    failing: dict[str, frozenset[str]] = {}
    with_complex_dtypes: list[str] = []
    for name, runs in evidence.opinfo_dtypes.items():
        if not runs:
            continue
        failing[name] = frozenset(dtype for dtype in supported_dtypes(name) - runs if not dtype.startswith("complex"))
        with_complex_dtypes += [name] if "complex64" in runs else []
    return with_complex(narrowed(text, failing), with_complex_dtypes)


def _headers(operators: Sequence[OperatorModel], natives: Mapping[str, NativeCode]) -> dict[str, str]:
    """What torchgen would generate for the patched yaml, one header for each base name."""
    texts: dict[str, str] = {}
    merged: dict[str, tuple[list[str], bool]] = {}
    for operator in operators:
        if operator.name not in natives:
            continue
        native, base = natives[operator.name], base_of(operator.overloads[0])
        lines, has_meta = merged.get(base, ([], False))
        merged[base] = ([*lines, *native.declarations], has_meta or native.has_meta)
    for base, (lines, has_meta) in merged.items():
        declarations = list(dict.fromkeys(lines))
        texts[f"include/ATen/ops/{base}_native.h"] = render(
            "upstream/native.h.j2", base=base, has_meta=has_meta, declarations=declarations
        )
    return texts


def _description(
    family: str, source: Source, rows: FamilyRows, evidence: FamilyEvidence | None, places: Sequence[str]
) -> str:
    overridden = [kernel.overload for kernel in catalog.family(family) if kernel.applies is not None]
    composites = [kernel.overload for kernel in catalog.family(family) if kernel.composite]
    return render(
        "upstream/description.md.j2",
        family=family,
        release=source.release,
        rows=rows,
        evidence=evidence,
        places=places,
        overridden=overridden,
        composites=composites,
        operators=list(dict.fromkeys(overload.partition(".")[0] for overload in rows.kernels)),
    )
