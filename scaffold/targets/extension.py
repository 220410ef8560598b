"""Target `extension`: a package with Objective-C++ and Metal, built for one release of torch."""

from __future__ import annotations

from ..launches.aten_host import AtenHost
from . import Generated, Request
from .rendering import render
from .testing import files_of_tests


def generate(request: Request) -> Generated:
    """The package: host code, Metal source, bindings, build files and tests."""
    values = {
        "operator": request.operator,
        "kind": request.kind,
        "launches": request.launches,
        "hosts": [AtenHost(launch, "mps_support::") for launch in request.launches],
        "package": request.package,
        "base": request.base,
    }
    stem, package = request.operator.stem, request.package
    files = {
        f"src/{stem}.mm": render("extension/kernel.mm.j2", **values),
        f"src/{stem}_metal.h": render("extension/metal.h.j2", **values),
        "src/mps_support.h": render("extension/mps_support.h.j2", **values),
        f"{package}/__init__.py": render("extension/init.py.j2", **values),
        "setup.py": render("extension/setup.py.j2", **values),
        "pyproject.toml": render("extension/pyproject.toml.j2", **values),
        **files_of_tests(request, "tests"),
    }
    registers = {launch.name: "MPS" for launch in request.launches}
    return Generated(files, registers, arc=True, definitions=(f"TORCH_EXTENSION_NAME={package}_C",))
