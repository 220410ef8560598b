"""The tests that come with a scaffold: the same for every target but for how the kernel is registered."""

from __future__ import annotations

from ..rendering import render
from . import Request


def test_files(request: Request, folder: str, registers: str) -> dict[str, str]:
    """The generated tests. `registers`: the Python statement that registers the kernel."""
    values = {
        "operator": request.operator,
        "kind": request.kind,
        "kernels": request.kernels,
        "opinfos": request.opinfos,
        "registers": registers,
    }
    return {
        f"{folder}/conftest.py": render("tests/conftest.py.j2", **values),
        f"{folder}/test_{request.operator.stem}.py": render("tests/test_operator.py.j2", **values),
    }
