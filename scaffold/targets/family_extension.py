"""A finished family of mpsmith's kernels as a package: what its patch adds to PyTorch, built for an installed torch.

Host code and Metal are the patch's own. What PyTorch's build would generate for them stands beside: declarations,
registrations, and the Metal source as a header.
"""

from __future__ import annotations

from pathlib import Path

from ...simulator.metal.includes import include_folders
from ...simulator.upstream.operations import KERNELS, shader_library
from ...simulator.upstream.registrations import MpsYaml
from ..errors import ScaffoldError
from . import Generated
from .rendering import render
from .upstream.family import DEFINITIONS as OF_THE_PATCH
from .upstream.family import FamilyPatch

INCLUDE = "src/include"
# The last one has the Metal source compiled at run time, where PyTorch's own build bundles it.
_DEFINITIONS = (*OF_THE_PATCH, "PYTORCH_JIT_COMPILE_SHADERS")


def package_of(family: str) -> str:
    """The name of a family's package."""
    return f"{family}_mps"


def generate(patch: FamilyPatch, tags: Path, include: Path) -> Generated:
    """The package: host code, registrations, Metal source, build files and tests.

    `tags`: the release's tags.yaml; `include`: its headers.
    Raises ScaffoldError for a patch that brings no code.
    """
    if not patch.host:
        raise ScaffoldError(
            f"{patch.family} needs rows in native_functions.yaml alone: there is no code for an extension"
        )
    camel, overloads = Path(patch.host).stem, tuple(patch.rows.kernels)
    yaml = MpsYaml(patch.native_functions, tags, {overload.partition(".")[0] for overload in overloads})
    metal = patch.generated.files[f"tree/{KERNELS / camel}.metal"]
    package = package_of(patch.family)
    values = {
        "name": patch.family,
        "package": package,
        "camel": camel,
        "release": patch.operators[0].release,
        "overloads": overloads,
        "include": INCLUDE,
        "definitions": _DEFINITIONS,
        "registrations": yaml.registrations(frozenset(overloads)),
    }
    files = {
        f"src/{camel}.mm": patch.generated.files[f"tree/{patch.host}"],
        "src/extension.mm": render("family_extension/extension.mm.j2", **values),
        **{f"{INCLUDE}/{place}": text for place, text in yaml.headers(include, overloads).items()},
        f"{INCLUDE}/ATen/native/mps/{camel}_metallib.h": shader_library(
            metal, f"{camel}.metal", include_folders(None, [include])
        ),
        f"{package}/__init__.py": render("family_extension/init.py.j2", **values),
        "setup.py": render("family_extension/setup.py.j2", **values),
        "pyproject.toml": render("family_extension/pyproject.toml.j2", **values),
        "tests/conftest.py": render("family_extension/conftest.py.j2", **values),
        f"tests/test_{patch.family}.py": render("family_extension/test_family.py.j2", **values),
    }
    definitions = (*_DEFINITIONS, f"TORCH_EXTENSION_NAME={package}_C")
    return Generated(files, {}, arc=False, include=(INCLUDE,), definitions=definitions)
