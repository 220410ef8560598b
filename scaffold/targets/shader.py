"""Target `shader`: a folder with a Metal file and a Python module, in the layout of `mpsmith.kernels`."""

from __future__ import annotations

from ..launches.python_host import PythonHost
from . import Generated, Request
from .rendering import render
from .testing import files_of_tests

_RUNTIME = "mpsmith.kernels.runtime"


def generate(request: Request, *, in_package: bool = False) -> Generated:
    """The kernel module, its Metal source and its tests.

    `in_package`: for this repository, where modules import the runtime beside them, the tests have a device, and every
        family has cases for `mpsmith kernels verify`.
    """
    hosts = [PythonHost(launch) for launch in request.launches]
    floating = [launch for launch in request.launches if launch.is_floating_elementwise]
    runtime = "..runtime" if in_package else _RUNTIME
    own = [host for host in hosts if not host.launch.served_by]
    names = (["METAL_TYPES"] if len(floating) < len(own) else []) + ["Shader"]
    functions = ["floating"] if floating else []
    functions += ["as_tensors"] if any(len(launch.inputs) > 1 for launch in floating) else []
    imports = [f"from {runtime}.elementwise import {', '.join(sorted(functions))}"] if functions else []
    needed = [host.runtime for host in own if host.launch not in floating]
    for module in ("operands", "outputs", "row_layout"):
        if functions := sorted({name for modules in needed for name in modules.get(module, ())}):
            imports.append(f"from {runtime}.{module} import {', '.join(functions)}")
    values = {
        "operator": request.operator,
        "kind": request.kind,
        "launches": request.launches,
        "hosts": hosts,
        "imports": sorted([*imports, f"from {runtime}.shader import {', '.join(names)}"]),
        "uses_sequence": any("Sequence[" in " ".join([*host.parameters, host.signature.returns]) for host in hosts),
    }
    stem = request.operator.stem
    tests = files_of_tests(request, "tests", f"mpsmith.kernels.{stem}.{stem}" if in_package else "path")
    if in_package:
        tests = {f"tests/simulated/test_kernel_{stem}.py": tests[f"tests/test_{stem}.py"]}
    files = {
        f"kernels/{stem}/__init__.py": f'"""The family `{stem}`: its kernels, and the cases that verify them."""\n',
        f"kernels/{stem}/{stem}.py": render("shader/kernel.py.j2", **values),
        f"kernels/{stem}/{stem}.metal": render("shader/kernel.metal.j2", **values),
        **tests,
    }
    if in_package:
        files[f"kernels/{stem}/cases.py"] = render("shader/cases.py.j2", **values, opinfos=request.opinfos)
    return Generated(files, {})
