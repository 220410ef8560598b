"""Families of a folder and kernels by name, in a fake package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.runtime.catalog import UnknownKernelError
from mpsmith.registry.kernel_index import KernelEntry

PACKAGE = catalog._PACKAGE


def first(x: Any) -> Any:
    return x


def second(x: Any) -> Any:
    return x


def applies(x: Any) -> bool:
    return True


FAMILIES = {
    "beta": "from tests_of_catalog import first\nKERNELS = (('aten::beta', first), ('aten::shared', first))\n",
    "alpha": "from tests_of_catalog import first, second, applies\n"
    "KERNELS = (('aten::alpha', first), ('aten::alpha.out', second), ('aten::extra', second))\n"
    "OVERRIDES = (('aten::native', second, applies),)\n"
    "ON_CPU = (('aten::later', second, applies), ('aten::alpha.out', second, applies))\n",
}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two families; a folder without a module of its name is none."""
    folder = tmp_path / "package_of_kernels"
    for name, text in FAMILIES.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
        (folder / name / f"{name}.py").write_text(text)
    (folder / "alpha" / "cases.py").write_text("WORK = 7\n")
    (folder / "runtime").mkdir()
    (folder / "runtime" / "catalog.py").touch()
    (folder / "__init__.py").touch()
    shared = ModuleType("tests_of_catalog")
    vars(shared).update(first=first, second=second, applies=applies)
    monkeypatch.setitem(sys.modules, "tests_of_catalog", shared)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(catalog, "_PACKAGE", "package_of_kernels")
    monkeypatch.setattr(catalog, "_FOLDER", folder)
    _forget()
    yield folder
    _forget()
    for name in [name for name in sys.modules if name.startswith("package_of_kernels")]:
        del sys.modules[name]


def _forget() -> None:
    catalog.families.cache_clear()
    catalog.family.cache_clear()


def test_families_are_folders_with_a_module_of_their_name() -> None:
    assert catalog.families() == ("alpha", "beta")
    assert catalog.folder_of("beta").name == "beta"
    with pytest.raises(UnknownKernelError, match=r"^there is no family alpho in mpsmith.kernels \(did you mean alpha"):
        catalog.folder_of("alpho")


def test_families_are_imported_from_the_package_of_kernels() -> None:
    assert PACKAGE == "mpsmith.kernels"


def test_family_has_the_rows_of_its_tables() -> None:
    rows = [(k.overload, k.family, k.function, k.applies) for k in catalog.family("alpha")]
    assert rows == [
        ("aten::alpha", "alpha", first, None),
        ("aten::alpha.out", "alpha", second, None),
        ("aten::extra", "alpha", second, None),
        ("aten::later", "alpha", second, None),
        ("aten::native", "alpha", second, applies),
    ]
    on_cpu = {kernel.overload: kernel.derived for kernel in catalog.family("alpha") if kernel.on_cpu is applies}
    assert on_cpu == {"aten::alpha.out": False, "aten::later": True}
    assert [kernel.operator for kernel in catalog.family("alpha")][:2] == ["aten::alpha", "aten::alpha"]
    assert [kernel.overload for kernel in catalog.all_kernels()][-2:] == ["aten::beta", "aten::shared"]


def test_parts_are_optional() -> None:
    cases = catalog.part_of("alpha", "cases")
    assert cases is not None
    assert cases.WORK == 7
    assert catalog.part_of("beta", "cases") is None
    with pytest.raises(UnknownKernelError):
        catalog.part_of("gamma", "cases")


def entries(*rows: tuple[str, str, str | None]) -> dict[str, KernelEntry]:
    return {operator: KernelEntry(operator, kernel, status) for operator, kernel, status in rows}


@pytest.mark.parametrize(
    ("status", "finished"),
    [
        ("implemented", True),
        ("verified", True),
        ("upstreamed", True),
        ("in progress", False),
        ("wanted", False),
        (None, False),
    ],
)
def test_finished_statuses(status: str | None, finished: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "kernel_entries", lambda: entries(("aten::beta", "beta", status)))
    assert [entry.operator for entry in catalog.finished_entries()] == ["aten::beta"] * finished
    assert [kernel.overload for kernel in catalog.finished()] == ["aten::beta"] * finished


def test_finished_operators_of_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    named = entries(
        ("aten::shared", "beta", "implemented"),
        ("aten::alpha", "alpha", "verified"),
        ("aten::extra", "beta", "implemented"),
        ("aten::native", "alpha", "wanted"),
    )
    monkeypatch.setattr(catalog, "kernel_entries", lambda: named)
    assert [kernel.overload for kernel in catalog.finished()] == ["aten::alpha", "aten::alpha.out", "aten::shared"]


def test_unknown_family_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "kernel_entries", lambda: entries(("aten::x", "gamma", "implemented")))
    with pytest.raises(UnknownKernelError, match="no family gamma"):
        catalog.finished_entries()
    with pytest.raises(UnknownKernelError, match="no family gamma"):
        catalog.finished()


def test_names_are_operators_overloads_or_families(monkeypatch: pytest.MonkeyPatch) -> None:
    def overloads(*names: str) -> list[str]:
        return [kernel.overload for kernel in catalog.named(names)]

    assert overloads("alpha") == overloads("aten::alpha") == ["aten::alpha", "aten::alpha.out"]
    assert overloads("alpha.out", "beta", "alpha") == ["aten::alpha.out", "aten::beta", "aten::alpha"]
    assert overloads() == []
    monkeypatch.setattr(catalog, "all_kernels", lambda: (catalog.Kernel("aten::linalg_x", "solver", first),))
    assert overloads("solver") == ["aten::linalg_x"]
    monkeypatch.undo()
    with pytest.raises(UnknownKernelError, match=r"^mpsmith has no kernel for aten::bete \(did you mean aten::beta"):
        overloads("alpha", "bete")
    with pytest.raises(UnknownKernelError, match=r"has no kernel for aten::alphaxout \(did you mean aten::alpha.out"):
        overloads("alphaxout")
