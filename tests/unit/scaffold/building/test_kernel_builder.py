"""A build.toml of Hugging Face's kernel-builder: what is built of it, and what is refused."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpsmith.scaffold.building.kernel_builder import offer_local_kernel, requests_of_build_file
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.simulator.air.metallib import programs_in

BUILD = """\
[general]
name = "my-twice"
backends = ["cuda", "metal"]
hub = { repo-id = "someone/my-twice" }

[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]
stable-abi = { cuda = "2.11" }

[kernel.twice]
backend = "metal"
depends = ["torch"]
include = ["."]
src = ["metal/twice.mm", "metal/twice.metal", "metal/common.h"]

[kernel.twice_cuda]
backend = "cuda"
depends = ["torch"]
src = ["cuda/twice.cu"]
"""


def project(folder: Path, build: str = BUILD) -> Path:
    (folder / "torch-ext" / "my_twice").mkdir(parents=True)
    (folder / "metal").mkdir()
    (folder / "metal" / "common.h").write_text("constant float factor = 2.0f;\n")
    (folder / "metal" / "twice.metal").write_text('#include "common.h"\nkernel void twice(device float* x) {}\n')
    (folder / "build.toml").write_text(build)
    return folder


def test_the_kernels_for_metal_are_built_as_the_builder_does(tmp_path: Path) -> None:
    script = requests_of_build_file(project(tmp_path))
    (request,) = script.requests
    name = request.name.removeprefix("my_twice.")
    assert [path.relative_to(tmp_path).as_posix() for path in request.sources] == [
        "torch-ext/torch_binding.cpp",
        "metal/twice.mm",
    ]
    assert request.place == script.packages / "my_twice"
    assert (request.options.arc, request.options.others) == (False, ())
    definitions = dict(definition.partition("=")[::2] for definition in request.options.definitions)
    assert definitions["METAL_KERNEL"] == ""
    assert definitions["EMBEDDED_METALLIB_NAMESPACE"] == f"{name}_metal"
    header = next(
        folder / definitions["EMBEDDED_METALLIB_HEADER"].strip('"')
        for folder in request.options.include
        if folder.name == "kernel-builder"
    )
    array = re.search(r"\{([\d,]+)\}", header.read_text())
    assert array
    (program,) = programs_in(bytes(map(int, array[1].split(","))))
    assert "constant float factor" in program.text
    assert "kernel void twice" in program.text
    assert "PyInit_" in (tmp_path / "torch-ext" / "registration.h").read_text()
    assert f"torch.ops.{name}" in (script.packages / "my_twice" / "_ops.py").read_text()
    assert script.kernel == "someone/my-twice=my_twice"


def test_metal_cpp_is_there_for_a_kernel_that_depends_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, BUILD.replace('["torch"]\ninclude', '["torch", "metal-cpp"]\ninclude'))
    headers = tmp_path / "metal-cpp"
    monkeypatch.setattr("mpsmith.scaffold.building.kernel_builder.metal_cpp_folder", lambda: headers)
    with pytest.raises(ScaffoldError, match="depends on metal-cpp; fetch it once with: mpsmith check --setup"):
        requests_of_build_file(folder)
    headers.mkdir()
    assert headers in requests_of_build_file(folder).requests[0].options.include


def test_a_stable_interface_is_asked_for_by_backend(tmp_path: Path) -> None:
    (request,) = requests_of_build_file(project(tmp_path, BUILD.replace("cuda = ", "metal = "))).requests
    assert f"TORCH_TARGET_VERSION={2 << 56 | 11 << 48:#x}" in request.options.definitions


def test_a_kernel_without_compiled_code_has_its_package_alone(tmp_path: Path) -> None:
    script = requests_of_build_file(project(tmp_path, '[general]\nname = "my-twice"\n[torch-noarch]\n'))
    assert script.requests == ()
    operators = (script.packages / "my_twice" / "_ops.py").read_text()
    assert "from . import" not in operators
    assert script.kernel == ""


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (BUILD.replace("[torch]", "[torch"), "cannot read .*build.toml: .*line 6"),
        (BUILD.replace('name = "my-twice"', ""), r"\[general\] has no name"),
        (BUILD.replace('"my-twice"\nb', '"other"\nb'), "needs the folder torch-ext/other"),
        (BUILD.replace(', "metal"]', "]"), "does not list the backend metal"),
        (BUILD.replace('src = ["metal', 'source = ["metal'), r"\[kernel.twice\] has no src"),
        (BUILD.replace("twice.metal", "gone.metal"), "names .*gone.metal, which is not there"),
        (BUILD.replace("[torch]", "[tvm-ffi]"), r"has no \[torch\]: only kernels for torch are built here"),
    ],
)
def test_invalid_build_files_are_one_line_errors(tmp_path: Path, build: str, reason: str) -> None:
    with pytest.raises(ScaffoldError, match=reason):
        requests_of_build_file(project(tmp_path, build))


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder where tests get the kernel of the module built_here, and nothing else of these names."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "built_here.py").write_text("answer = 42\n")
    others = [entry for entry in sys.path if not Path(entry, "kernels").is_dir()]  # mpsmith's own, in a checkout
    monkeypatch.setattr(sys, "path", [str(tmp_path / "tests"), str(tmp_path), *others])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "kernels", raising=False)
    offer_local_kernel("someone/kernel=built_here")
    yield tmp_path
    for name in ("kernels", "built_here"):
        sys.modules.pop(name, None)


def test_tests_get_the_kernel_that_was_built_and_no_other(offered: Path) -> None:
    kernels = importlib.import_module("kernels")
    assert kernels.get_kernel("someone/kernel", version=1).answer == 42
    assert kernels.get_local_kernel(offered).answer == 42
    with pytest.raises(ModuleNotFoundError, match="No module named 'kernels'"):
        kernels.get_kernel("someone/other")


def test_a_projects_own_package_of_this_name_is_imported_as_it_is(offered: Path) -> None:
    (offered / "tests" / "kernels").mkdir()
    (offered / "tests" / "kernels" / "__init__.py").write_text("own = True\n")
    assert [name for name in vars(importlib.import_module("kernels")) if name[0] != "_"] == ["own"]


def test_an_installed_module_keeps_its_attributes(
    offered: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path_factory.mktemp("installed")
    (installed / "kernels.py").write_text("version = 3\ndef get_kernel(name): return name.upper()\n")
    monkeypatch.syspath_prepend(installed)
    kernels = importlib.import_module("kernels")
    assert (kernels.version, kernels.get_kernel("someone/other")) == (3, "SOMEONE/OTHER")
    assert kernels.get_kernel("someone/kernel").answer == 42
