"""Which folder may import which: at the top level, inside each folder, and never in a circle."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

import pytest

from support import imports
from support.imports import imports_of, modules, package_of

# What the modules of a folder may import of the others. The command line may import everything.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "simulator": (),
    "registry": (),
    "audit": ("simulator", "registry"),
    "kernels": ("registry",),
    # What verifies a kernel hands its cases to the auditor's judge; what runs it knows nothing of audits.
    "kernels.verification": ("registry", "audit", "simulator"),
    "kernels.*.cases": ("audit",),
    # `mpsmith check` reads macOS wheels as the audit does, and compiles Metal source where the simulator can.
    # A family's patch says what verifying the family showed.
    "scaffold": ("registry", "audit", "kernels.runtime", "kernels.verification", "simulator"),
    "reports": ("audit", "registry"),
    # Pages about kernels show what verifies them.
    "reports.pages": ("audit", "registry", "kernels.runtime", "kernels.verification"),
    # Evidence is what an audit and the verification of kernels showed, on the device that preflight opens first.
    "reports.evidence": ("audit", "registry", "kernels.runtime", "kernels.verification", "simulator.opening"),
    # A traced program uses the device that an audit would open; the registry knows what replaces a fallback.
    "tracing": ("audit", "registry", "simulator", "reports"),
    # A network runs like a case in an audit's worker and is recorded like a traced program.
    "tracing.networks": ("audit", "simulator", "reports", "kernels.runtime"),
}
# What every folder may import.
GROUND = ("errors", "cache", "metal_limits")

# The folders and modules inside a folder: each may import only those that are listed before it.
LAYERS: dict[str, str] = {
    "audit": "model releases judging cases compiled store findings answers shipped running self_test",
    # Commands import no other command but for what an audit does afterwards.
    "cli": (
        "ending options audit_options audit_lines printing host_code coverage_text shipped_text registry_text "
        "release_changes_text registry compiled kernels site report audit replay self_test "
        "compare_text compare "
        "coverage shipped compiled_defects shader evidence_text evidence scaffold check build try_checkout upstream "
        "next_gap trace networks why preflight doctor"
    ),
    "scaffold": (
        "errors manifest building release_files proof operators launches targets generation suggestions "
        "patch_build checkout"
    ),
    "tracing": (
        "recording journal classification call_sites autograd_nodes call_facts dispatch_keys patches recorder "
        "device_clock process supervision summary text json_form annotations session "
        "pytest_plugin networks"
    ),
    "simulator": "errors clang metal air device mpsgraph objc upstream fallback_recorders opening shipped macho",
}


@pytest.fixture(scope="module")
def arrows() -> list[tuple[str, int, str]]:
    """Each import between two modules of the package: the importing module, its line, the module it names."""
    return imports.arrows()


def upward(arrows: list[tuple[str, int, str]], folder: str, layers: Sequence[str]) -> list[str]:
    """The imports inside `folder` that run from a lower layer to a higher one, and modules in no layer."""
    height = {name: layer for layer, name in enumerate(layers)}
    wrong = []
    for module, line, target in arrows:
        if not (module.startswith(f"{folder}.") and target.startswith(f"{folder}.")):
            continue
        here, there = module.split(".")[1], target.split(".")[1]
        if here not in height or there not in height:
            wrong.append(f"{module}:{line} imports {target}: not in any layer")
        elif height[there] > height[here]:
            wrong.append(f"{module}:{line} imports {target}, which is above it")
    return wrong


def test_imports_are_read_in_every_form() -> None:
    source = (
        "from ..registry.model import Entry\n"
        "from .. import errors\n"
        "from . import tables\n"
        "from .tables import table\n"
        "import mpsmith.audit.store\n"
        "from mpsmith.cli import main\n"
        "import torch, json\n"
        "def later():\n"
        "    from ...simulator import device\n"
    )
    assert list(imports_of(source, ("reports", "pages"))) == [
        (1, "reports.registry.model.Entry"),
        (2, "reports.errors"),
        (3, "reports.pages.tables"),
        (4, "reports.pages.tables.table"),
        (5, "audit.store"),
        (6, "cli.main"),
        (9, "simulator.device"),
    ]


def folder_of(module: str) -> str:
    """The narrowest pattern of MAY_IMPORT that the module belongs to, or its top-level folder."""
    prefixes = [".".join(module.split(".")[:depth]) for depth in range(module.count(".") + 1, 0, -1)]
    patterns = (pattern for prefix in prefixes for pattern in MAY_IMPORT if fnmatchcase(prefix, pattern))
    return next(patterns, module.split(".")[0])


def test_a_module_belongs_to_its_narrowest_folder() -> None:
    assert folder_of("kernels.runtime.catalog") == folder_of("kernels.mode.mode") == "kernels"
    assert folder_of("kernels.verification.source") == "kernels.verification"
    assert folder_of("kernels.mode.cases") == "kernels.*.cases"
    assert folder_of("cli.audit") == "cli"


def test_folders_import_in_one_direction(arrows: list[tuple[str, int, str]]) -> None:
    wrong = []
    for module, line, target in arrows:
        folder = folder_of(module)
        if folder not in MAY_IMPORT or not target:
            continue
        allowed = (folder.split(".")[0], *MAY_IMPORT[folder], *GROUND)
        if not any(f"{target}.".startswith(f"{prefix}.") for prefix in allowed):
            wrong.append(f"{module}:{line} imports mpsmith.{target}")
    assert wrong == []


def test_running_a_kernel_imports_no_verification(arrows: list[tuple[str, int, str]]) -> None:
    """`import mpsmith.kernels` stays fast, and so does the first call of a kernel."""
    verifies = ("cases", "workload")
    wrong = [
        f"{module}:{line} imports mpsmith.{target}"
        for module, line, target in arrows
        if module.startswith("kernels.")
        and not module.startswith("kernels.verification")
        and module.split(".")[-1] not in verifies
        and (target.startswith("kernels.verification") or target.split(".")[-1] in verifies)
    ]
    assert wrong == []


def test_the_simulator_knows_nothing_of_the_faults_that_are_put_into_it(arrows: list[tuple[str, int, str]]) -> None:
    faults = "simulator.device.faults"
    wrong = [
        f"{module}:{line} imports mpsmith.{target}"
        for module, line, target in arrows
        if module.startswith("simulator.") and not module.startswith(faults) and target.startswith(faults)
    ]
    assert wrong == []


def test_every_folder_has_a_direction() -> None:
    folders = {name.split(".")[0] for name in modules() if "." in name}
    assert folders == {*(pattern.split(".")[0] for pattern in MAY_IMPORT), "cli"}


@pytest.mark.parametrize("folder", sorted(LAYERS))
def test_the_folders_inside_a_folder_import_downwards(folder: str, arrows: list[tuple[str, int, str]]) -> None:
    assert upward(arrows, folder, LAYERS[folder].split()) == []


@pytest.mark.parametrize("folder", sorted(LAYERS))
def test_every_layer_exists(folder: str) -> None:
    inside = {name.split(".")[1] for name in modules() if name.startswith(f"{folder}.")}
    assert inside == set(LAYERS[folder].split())


def test_an_import_upwards_is_named() -> None:
    arrows = [("audit.cases", 7, "audit.judging.judge"), ("audit.judging.judge", 3, "audit.cases")]
    assert upward(arrows, "audit", ("cases", "judging")) == [
        "audit.cases:7 imports audit.judging.judge, which is above it"
    ]


def circle_of(arrows: list[tuple[str, int, str]]) -> list[str]:
    """The modules of one circle of imports, or nothing."""
    graph: dict[str, set[str]] = {}
    for module, _, target in arrows:
        if target and target != module:
            graph.setdefault(module, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle(arrows: list[tuple[str, int, str]]) -> None:
    assert circle_of(arrows) == []


def test_detects_a_circle() -> None:
    assert set(circle_of([("a", 1, "b"), ("b", 1, "c"), ("c", 1, "a")])) == {"a", "b", "c"}


def between_folders(arrows: list[tuple[str, int, str]], package: str) -> list[tuple[str, int, str]]:
    """The imports between the entries of a package, each folder there taken as one."""
    depth = package.count(".") + 1
    pairs = [
        (module.split(".")[depth], line, target.split(".")[depth])
        for module, line, target in arrows
        if module.startswith(f"{package}.") and target.startswith(f"{package}.")
    ]
    return [(here, line, there) for here, line, there in pairs if here != there]


def test_no_folders_import_each_other_in_a_circle_at_any_depth(arrows: list[tuple[str, int, str]]) -> None:
    packages = [name for name, path in modules().items() if name and path.name == "__init__.py"]
    circles = {package: circle_of(between_folders(arrows, package)) for package in packages}
    assert {package: circle for package, circle in circles.items() if circle} == {}


def test_detects_a_circle_of_folders() -> None:
    arrows = [("a.b.c.one", 1, "a.b.d.two"), ("a.b.d.three", 1, "a.b.c.four"), ("a.b.c.one", 1, "a.b.c.four")]
    assert circle_of(arrows) == []
    assert set(circle_of(between_folders(arrows, "a.b"))) == {"c", "d"}
    assert circle_of(between_folders(arrows, "a")) == []


def private(source: str, package: tuple[str, ...]) -> list[str]:
    """The names of other modules that a source imports although they begin with an underscore."""
    names = (name.rpartition(".")[2] for _, name in imports_of(source, package))
    return [name for name in names if name.startswith("_") and not name.startswith("__") and name not in GROUND]


def test_a_private_name_stays_in_its_module() -> None:
    named = modules()
    imported = {name: private(path.read_text("utf-8"), package_of(name, path)) for name, path in named.items()}
    assert {name: names for name, names in imported.items() if names} == {}


def test_detects_a_private_name() -> None:
    source = "from ..air.entry_point import _BUILTINS, PLAIN\nfrom .. import _state\nfrom torch import _C\n"
    assert private(source, ("simulator", "metal")) == ["_BUILTINS", "_state"]
