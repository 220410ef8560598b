"""A finished family of mpsmith's kernels as a patch against PyTorch's tree.

The Metal source is the family's own, moved. The host code is `kernels/FAMILY/upstream.mm`, or is generated for
elementwise functors, which use PyTorch's own elementwise kernels and dispatch stubs. A family needs none if PyTorch
has got its own kernels since the installed release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ....audit.releases import data as release_data
from ....audit.releases.coverage import from_data, lacking
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
from .host_file import host_file, without_unused
from .native_code import NativeCode, native_code
from .opinfo_entry import with_opinfo
from .patch import TREE_COMMON_MPS, TREE_OPINFOS, TREE_YAML, Tree
from .source_form import folded
from .yaml_rows import entries_of, with_mps_rows

DEFINITIONS = ("USE_MPS", "AT_PER_OPERATOR_HEADERS")


@dataclass(frozen=True)
class FamilyPatch:
    """A family's patch.

    Attributes:
        family: the family's name.
        operators: the operators that it serves, as the release has them.
        rows: the row of each overload.
        generated: the patch, its description, the tree's new files and headers for the checker.
    """

    family: str
    operators: tuple[OperatorModel, ...]
    rows: FamilyRows
    generated: Generated


@dataclass(frozen=True)
class Family:
    """A finished family of kernels: its name, its folder and the rows of its table."""

    name: str
    folder: Path
    kernels: tuple[catalog.Kernel, ...]

    @classmethod
    def named(cls, name: str) -> Family:
        """The family of that name. Raises UnknownKernelError if there is none."""
        kernels = tuple(catalog.family(name))
        return cls(name, catalog.folder_of(name), kernels)

    @classmethod
    def serving(cls, operator: str) -> Family:
        """The family that serves an operator. Raises UnknownKernelError for one without a kernel."""
        return cls.named(catalog.named([operator])[0].family)

    @property
    def patched(self) -> tuple[catalog.Kernel, ...]:
        """The kernels that can be added to PyTorch's tree with only rows and new files."""
        return tuple(
            kernel
            for kernel in self.kernels
            if kernel.applies is None and not (kernel.composite or kernel.derived or kernel.sparse)
        )

    @property
    def metal(self) -> Path:
        """The Metal file that a patch moves into PyTorch's tree."""
        return self.folder / f"{self.name}.metal"

    @property
    def camel(self) -> str:
        """The name of its files in PyTorch's tree."""
        return "".join(word[:1].upper() + word[1:] for word in self.name.split("_"))

    @cached_property
    def opinfos(self) -> tuple[str, ...]:
        """The OpInfos that test its operators; kernels that only replace torch's for some inputs do not count."""
        from ...operators.opinfos import named, opinfos_for

        served = {kernel.operator for kernel in self.kernels if kernel.applies is None}
        names = [call.name for call in calls_of(self.name) if not served.isdisjoint(call.operators)]
        for operator in sorted(served):
            names += opinfos_for(operator.removeprefix("aten::")).names
        return tuple(dict.fromkeys(name for name in names if named(name)))


def generate(family: Family, source: Source, tree: Tree, evidence: FamilyEvidence | None = None) -> FamilyPatch:
    """The patch of a family.

    `evidence`: the measurements of its kernels; without it the lists of expected failures stay as they are.
    Raises:
        NothingToPatchError: the release, or the newest one, has kernels for all that the family serves.
        ScaffoldError: host code is missing.
    """
    overloads = _served(family, source)
    operators = _operators(overloads, source)
    host = _host_code(family, operators, tree)
    data = release_data.load()
    newest = from_data(data, len(data.releases) - 1)
    if host is None and not any(overload.name in overloads for overload in lacking(newest.overloads)):
        raise NothingToPatchError(
            f"torch {newest.release} has kernels on mps for all that {family.name} serves: nothing to patch"
        )
    rows = planned_rows(tree.native_functions, overloads, host)
    if not rows.kernels:
        raise NothingToPatchError(
            f"torch {source.release} has kernels on mps for all that {family.name} serves: nothing to patch"
        )
    yaml_text = with_mps_rows(tree.native_functions, rows.kernels)
    natives = {
        operator.name: native_code(operator, entries_of(yaml_text, _grouped(operator)), tree.tags, chosen)
        for operator in operators
        if (
            chosen := {
                overload.name: rows.kernels[overload.name]
                for overload in operator.overloads
                if overload.name in rows.kernels
            }
        )
    }
    if host:
        host = without_unused(host, rows.kernels.values())
        _require_heads(family.name, host, rows, natives)
    code = _code_files(family, host) if host is not None and _needs_host(rows, host) else {}
    opinfos = tree.opinfos
    for operator in reversed(operators) if not family.opinfos else ():
        opinfos = with_opinfo(opinfos, operator)
    patch = "".join(
        [
            changed(TREE_YAML, tree.native_functions, yaml_text),
            *(added(path, text) for path, text in code.items()),
            changed(TREE_COMMON_MPS, tree.common_mps, _common_mps(tree.common_mps, evidence)),
            changed(TREE_OPINFOS, tree.opinfos, opinfos),
        ]
    )
    files = {
        f"{family.name}.patch": patch,
        "description.md": _description(family, source, rows, evidence, tuple(code)),
        **{f"tree/{path}": text for path, text in code.items()},
        f"tests/test_{family.name}.py": render(
            "tests/test_family.py.j2", family=family.name, overloads=list(rows.kernels)
        ),
        **_headers(operators, natives),
    }
    generated = Generated(files, {}, arc=False, include=("include",), definitions=DEFINITIONS)
    return FamilyPatch(family.name, operators, rows, generated)


def _served(family: Family, source: Source) -> list[str]:
    """The patched overloads of the family that the release has."""
    in_release = {function.name for functions in source.by_operator.values() for function in functions}
    names = [kernel.overload.removeprefix("aten::") for kernel in family.patched]
    served = [name for name in names if name in in_release]
    if not served:
        raise ScaffoldError(f"torch {source.release} has no operator that {family.name} serves")
    return served


def _operators(overloads: Sequence[str], source: Source) -> tuple[OperatorModel, ...]:
    names = dict.fromkeys(overload.partition(".")[0] for overload in overloads)
    return tuple(source.operator(name) for name in names)


def _grouped(operator: OperatorModel) -> list[str]:
    """The overloads that torchgen groups: the operator's and those of its in-place or functional variant."""
    return list(dict.fromkeys([*(overload.name for overload in operator.overloads), *operator.relatives]))


def _host_code(family: Family, operators: Sequence[OperatorModel], tree: Tree) -> str | None:
    """The family's own host code, or that of its elementwise functors; None if it has neither."""
    own = family.folder / "upstream.mm"
    if own.is_file():
        return host_file(own, family.camel, [operator.name for operator in operators])
    functors = {functor.name: functor for functor in elementwise_functors(family.metal)}
    stubs: list[tuple[OperatorModel, Stub, int]] = []
    for operator in operators:
        stub = stub_for(operator.name, tree.include)
        if operator.name not in functors or stub is None or stub.parameters:
            return None
        stubs.append((operator, stub, functors[operator.name].operands))
    return render("upstream/family.mm.j2", camel=family.camel, stubs=stubs)


def _needs_host(rows: FamilyRows, host: str) -> bool:
    """Whether the host code defines a kernel that a row names, or a kernel for a dispatch stub."""
    return any(defines(host, kernel) for kernel in rows.kernels.values()) or "REGISTER_DISPATCH(" in host


def _require_heads(family: str, host: str, rows: FamilyRows, natives: Mapping[str, NativeCode]) -> None:
    """Raise ScaffoldError unless each kernel is structured exactly where PyTorch's build requires it."""
    for native in natives.values():
        for overload, head in native.heads.items():
            kernel = rows.kernels[overload]
            if overload not in rows.shared and head.structured != (f"TORCH_IMPL_FUNC({kernel})" in host):
                raise ScaffoldError(
                    f"kernels/{family}/upstream.mm defines {kernel} in another way than torch asks for: {head.line}"
                )


def _code_files(family: Family, host: str) -> dict[str, str]:
    return {
        f"aten/src/ATen/native/mps/operations/{family.camel}.mm": folded(host),
        f"aten/src/ATen/native/mps/kernels/{family.camel}.metal": folded(moved(family.metal)),
    }


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
    """torchgen's output for the patched yaml, one header for each base name."""
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
    family: Family, source: Source, rows: FamilyRows, evidence: FamilyEvidence | None, code: Sequence[str]
) -> str:
    return render(
        "upstream/description.md.j2",
        family=family.name,
        release=source.release,
        rows=rows,
        evidence=evidence,
        places=code,
        overridden=[kernel.overload for kernel in family.kernels if kernel.applies is not None],
        operators=list(dict.fromkeys(overload.partition(".")[0] for overload in rows.kernels)),
    )
