"""The tests of a scaffold, the same for every target except for the registration of the kernel."""

from __future__ import annotations

from . import Request
from .rendering import render


def files_of_tests(request: Request, folder: str, module: str = "") -> dict[str, str]:
    """The generated tests.

    `module`: the dotted name of the kernel module whose table they register, `path` for the file beside the tests,
    `patch` for a library that `mpsmith check --run` loads, or empty for a package that registers its kernels when it is
    imported.
    """
    values = {
        "operator": request.operator,
        "kind": request.kind,
        "launches": request.launches,
        "under_test": request.under_test,
        "opinfos": request.opinfos,
        "integers": request.tested_integers(promotes=module not in ("", "patch")),
        "module": module,
        "package": request.package,
    }
    return {
        f"{folder}/conftest.py": render("tests/conftest.py.j2", **values),
        f"{folder}/test_{request.operator.stem}.py": render("tests/test_operator.py.j2", **values),
    }
