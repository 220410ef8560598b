"""Target `stable`: a package like an extension's on PyTorch's stable C interface, one binary for several releases."""

from __future__ import annotations

from ..launches.stable_host import StableHost, stable_since
from . import Generated, Request
from .rendering import render
from .testing import files_of_tests


def generate(request: Request) -> Generated:
    """The package. Raises InexpressibleError when the stable interface cannot pass an argument."""
    hosts = [StableHost(launch, "stable_support::") for launch in request.launches]
    for host in hosts:
        _ = host.signature  # raises for what cannot be passed, before anything is rendered
    major, minor = stable_since([launch.overload for launch in request.launches])
    version = f"TORCH_TARGET_VERSION=0x{major:02x}{minor:02x}000000000000"
    values = {
        "operator": request.operator,
        "kind": request.kind,
        "launches": request.launches,
        "hosts": hosts,
        "package": request.package,
        "base": request.base,
        "target": "stable",
        "since": f"{major}.{minor}",
        "define": f"-D{version}",
        "bridged": [host for host in hosts if host.needs_bridge],
        "direct": [host for host in hosts if not host.needs_bridge],
    }
    stem, package = request.operator.stem, request.package
    files = {
        f"src/{stem}.mm": render("stable/kernel.mm.j2", **values),
        f"src/{stem}_metal.h": render("extension/metal.h.j2", **values),
        "src/stable_support.h": render("stable/stable_support.h.j2", **values),
        f"{package}/__init__.py": render("stable/init.py.j2", **values),
        "setup.py": render("stable/setup.py.j2", **values),
        "pyproject.toml": render("extension/pyproject.toml.j2", **values),
        **files_of_tests(request, "tests"),
    }
    registers = {host.launch.name: "MPS" for host in hosts if not host.needs_bridge}
    return Generated(files, registers, arc=True, definitions=(version, "USE_MPS"))
