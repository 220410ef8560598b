"""`mpsmith scaffold`: from an operator's name to a plan of files, and from there into folder and registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...audit.releases import data as release_data
from ...audit.surface import native_functions
from ...audit.surface.overloads import Dispatch
from ...audit.wheel.fetch import require_version
from ...checkout import PACKAGE, is_checkout
from ...near_names import near
from ...registry.files import edit_all, load
from ...registry.model import Entry, Status
from ..errors import InexpressibleError, ScaffoldError, ToolchainError
from ..manifest import NAME, Manifest, read_manifest
from ..operators import model as operators
from ..operators.kinds import Choice, Kind, kind_of
from ..operators.model import OperatorModel, Source
from ..operators.opinfos import opinfos_for
from ..proof import toolchain
from ..targets import Generated, Request, Target, extension, shader, stable
from ..targets.upstream import patch as upstream
from ..targets.upstream.dispatch_stubs import installed_include
from .writing import Plan, plan, write

_FURTHER = (Status.scaffolded, Status.implemented, Status.verified, Status.upstreamed)


@dataclass(frozen=True)
class Scaffold:
    """One scaffold, ready to be written.

    Attributes:
        operator: the operator that gets a kernel, which may be the one that the asked-for one shares its kernel with.
        asked: the operator that was asked for.
        choice: the kind of kernel and what it was told by.
        target: where it goes.
        plan: what would be written.
        next_command: what to type next.
    """

    operator: OperatorModel
    asked: OperatorModel
    choice: Choice
    target: Target
    plan: Plan
    next_command: str


def source_of(release: str | None) -> Source:
    """The operators of a release that was set up (`mpsmith check --setup --torch RELEASE`), or of the installed torch.

    Raises ToolchainError when that release was not set up.
    """
    if release is None or release == toolchain.chosen_release(None):
        return operators.installed()
    return operators.of_wheel(_wheel_folder(release), release)


def _wheel_folder(release: str) -> Path:
    """What was kept of a release's macOS wheel.

    Raises ToolchainError when it was not set up, WheelError for what is no release.
    """
    require_version(release)
    folder = toolchain.torch_folder(release)
    if not folder.is_dir():
        raise ToolchainError(
            f"there is nothing here of torch {release}; fetch it once with: mpsmith check --setup --torch {release}"
        )
    return folder


def chosen_kind(word: str | None) -> Kind | None:
    """The kind of that name. Raises ScaffoldError that lists the kinds."""
    names = [kind.value for kind in Kind]
    if word is None:
        return None
    if word not in names:
        raise ScaffoldError(f"'{word}' is no kind of kernel; there are {', '.join(names)}{near(word, names)}")
    return Kind(word)


def prepare(
    source: Source,
    name: str,
    target: Target,
    *,
    out: Path | None = None,
    kind: Kind | None = None,
    force: bool = False,
    registry: Path | None = None,
) -> Scaffold:
    """Everything for one operator, not yet written.

    Raises ScaffoldError: unknown operator, no gap (unless `force`), a folder with something else in it;
    InexpressibleError: the target cannot express the schema.
    """
    asked = source.operator(name)
    operator = source.serving(asked)
    if not force:
        operators.require_gap(operator, native_since(operator))
        _require_no_kernel(operator, registry)
    folder, manifest_name = _place(operator, target, out)
    if not force:
        _require_own(folder, manifest_name, operator, target)
    opinfos = opinfos_for(operator.name)
    choice = Choice(kind, "your choice") if kind else kind_of(operator, opinfos.kind)
    request = Request(operator, choice.kind, opinfos.names, source.relatives(operator))
    generated = _generate(request, target, source, folder)
    manifest = Manifest(
        operator.full_name,
        target.value,
        choice.kind.value,
        source.release,
        generated.registers,
        generated.include,
        generated.definitions,
        generated.arc,
    )
    planned = plan(folder, generated.files, manifest, manifest_name)
    return Scaffold(operator, asked, choice, target, planned, _next_command(operator, target, folder))


def prepare_all(
    source: Source, target: Target, out: Path, *, kind: Kind | None = None, force: bool = False
) -> Iterator[Scaffold | ScaffoldError]:
    """A scaffold for every gap of a release, each in a folder of its own below `out`; an error for those that fail."""
    for name in source.missing():
        try:
            place = out / source.serving(source.operator(name)).stem
            yield prepare(source, name, target, out=place, kind=kind, force=force, registry=None)
        except ScaffoldError as error:
            yield error


def apply(scaffolds: Sequence[Scaffold], *, force: bool = False, registry: Path | None = None) -> list[str]:
    """Write the files, then move the registry's entries to `scaffolded`; entries that are further stay.

    Returns the operators whose entry moved. Raises ScaffoldError before anything is written when files are in the way.
    """
    if not force:
        for one in scaffolds:
            if one.plan.conflicts:
                write(one.plan)
    for one in scaffolds:
        write(one.plan, force=force)
    entries = load(registry)
    moving = [
        one.operator.full_name
        for one in scaffolds
        if one.operator.full_name not in entries or entries[one.operator.full_name].status not in _FURTHER
    ]
    if moving:
        edit_all(registry, {operator: {"status": Status.scaffolded} for operator in moving}, add=True)
    return moving


def native_since(operator: OperatorModel) -> str | None:
    """The first known release in which an overload of the operator has a kernel; None where none is known to."""
    kernels = {dispatch.value for dispatch in Dispatch if dispatch.has_kernel}
    data = release_data.load()
    for position, facts in enumerate(data.releases):
        for overload in operator.overloads:
            history = data.overloads.get(overload.name)
            if history and history.dispatch[position] in kernels:
                return facts.release
    return None


def _require_no_kernel(operator: OperatorModel, registry: Path | None) -> None:
    entry: Entry | None = load(registry).get(operator.full_name)
    if entry and entry.kernel and entry.status in (Status.implemented, Status.verified):
        raise ScaffoldError(
            f"{operator.full_name} is {entry.status.value} already, in mpsmith.kernels.{entry.kernel}; "
            "--force scaffolds another kernel"
        )


def _place(operator: OperatorModel, target: Target, out: Path | None) -> tuple[Path, str]:
    """The folder, and where its manifest goes.

    Kernels for mpsmith belong into the folders of its clone; what has no place there goes into the current folder, or,
    inside a clone, into `work/`, which git ignores.
    """
    if out is not None:
        return out, NAME
    if is_checkout() and target is Target.SHADER:
        return PACKAGE, f"kernels/.scaffold/{operator.stem}.json"
    inside_clone = is_checkout() and Path.cwd().is_relative_to(PACKAGE.resolve())
    here = PACKAGE / "work" if inside_clone else Path.cwd()
    return here / f"{operator.stem}_{target.value}", NAME


def _require_own(folder: Path, manifest_name: str, operator: OperatorModel, target: Target) -> None:
    """Raise ScaffoldError when the folder holds anything but a scaffold of this operator for this target."""
    if folder == PACKAGE:
        return
    if folder.exists() and not folder.is_dir():
        raise ScaffoldError(f"{folder} is a file; choose another folder with --out")
    there = read_manifest(folder / manifest_name)
    if there is None and folder.is_dir() and any(folder.iterdir()):
        raise ScaffoldError(
            f"{folder} is not empty and holds no scaffold; choose another folder with --out, or --force"
        )
    if there and (there.operator, there.target) != (operator.full_name, target.value):
        raise ScaffoldError(
            f"{folder} holds the scaffold of {there.operator} for {there.target}; choose another folder with --out"
        )


def _generate(request: Request, target: Target, source: Source, folder: Path) -> Generated:
    if target is Target.SHADER:
        return shader.generate(request, in_package=folder == PACKAGE)
    if target is Target.EXTENSION:
        return extension.generate(request)
    if target is Target.STABLE:
        return stable.generate(request)
    return upstream.generate(request, _tree(source.release), lambda path: _text(folder / path))


def _tree(release: str) -> upstream.Tree:
    """The files of a release's tree, from the installed torch or from the wheel that was set up."""
    if release == toolchain.chosen_release(None):
        yaml, include = native_functions.installed_path(), installed_include()
        common = include.parent / "testing" / "_internal" / "common_mps.py"
    else:
        root = _wheel_folder(release)
        yaml, include, common = (
            root / toolchain.NATIVE_FUNCTIONS,
            root / "torch" / "include",
            root / toolchain.COMMON_MPS,
        )
    return upstream.Tree(yaml.read_text("utf-8"), yaml.with_name("tags.yaml"), _text(common) or "", include)


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _next_command(operator: OperatorModel, target: Target, folder: Path) -> str:
    if target is Target.SHADER and folder == PACKAGE:
        return f"python -m pytest tests/simulated/test_kernel_{operator.stem}.py"
    if target is Target.SHADER:
        return f"python -m pytest {folder / 'tests'}"
    return f"mpsmith check {folder}"


__all__ = ["InexpressibleError", "Scaffold", "apply", "chosen_kind", "prepare", "prepare_all", "source_of"]
