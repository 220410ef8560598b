"""What a folder's setup.py asks for, read without building it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.scaffold.building import simulated
from mpsmith.scaffold.building.setup_script import ExtensionRequest, requests_of
from mpsmith.scaffold.building.simulated import built
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.simulator.objc.building import TORCHS_BUILDER, BuiltExtension
from mpsmith.simulator.objc.compile_options import CompileOptions


def test_a_setup_script_lists_its_extensions(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from pathlib import Path\n"
        "from setuptools import Extension, setup\n"
        "assert Path('setup.py').is_file()\n"
        "macros, flags = [('A', None), ('B', '2')], {'cxx': ['-fobjc-arc', '-O2']}\n"
        "kernel = Extension('package._C', ['src/kernel.mm'], define_macros=macros, include_dirs=['own'],\n"
        "                   extra_compile_args=flags)\n"
        "setup(name='x', ext_modules=[kernel])\n"
    )
    before = Path.cwd()
    (request,) = requests_of(tmp_path).requests
    assert Path.cwd() == before
    assert request.name == "package._C"
    assert request.sources == (tmp_path / "src" / "kernel.mm",)
    assert request.options.arc is True
    assert request.options.definitions == ("A", "B=2")
    assert request.options.include == (tmp_path / "own",)
    assert request.options.others == ()
    assert request.place == tmp_path / "package"


def test_a_module_is_built_in_its_package_beside_a_folder_of_sources(tmp_path: Path) -> None:
    script = "from setuptools import Extension, setup\nsetup(name='x', ext_modules=[Extension('x._C', ['src/x.mm'])])\n"
    (tmp_path / "setup.py").write_text(script)
    (tmp_path / "src").mkdir()
    assert requests_of(tmp_path).requests[0].place == tmp_path / "src" / "x"
    (tmp_path / "x").mkdir()
    assert requests_of(tmp_path).requests[0].place == tmp_path / "x"


def test_torchs_builder_defines_the_macros_of_torchs_headers(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from torch.utils.cpp_extension import BuildExtension, CppExtension\n"
        "builder = BuildExtension.with_options(use_ninja=True)\n"
        "setup(name='x', ext_modules=[CppExtension('x', ['x.c'])], cmdclass={'build_ext': builder})\n"
    )
    (request,) = requests_of(tmp_path).requests
    assert request.options.definitions == (TORCHS_BUILDER,)


@pytest.mark.parametrize(
    ("file", "text", "builds"),
    [
        ("x.mm", "int x;", 1),
        ("x.mm", "int y;", 2),
        ("inner/x.hpp", "int y;", 2),
        ("k.metal", "kernel", 1),
        ("k.inc", '#include "k.metal"', 2),
    ],
)
def test_an_extension_of_the_same_files_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, builds: int
) -> None:
    built_for: list[Path] = []

    def build(request: ExtensionRequest) -> BuiltExtension:
        built_for.append(request.place)
        request.place.mkdir(parents=True)
        library = request.place / "x.so"
        library.write_text(f"{len(built_for)}")
        return BuiltExtension(library, "x", ())

    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    for name in ("x.mm", "inner/x.hpp", "k.metal"):
        (folder / name).write_text("int x;")
    libraries = SimpleNamespace(frameworks_library=lambda: "a", torch_host_library=lambda: "b")
    monkeypatch.setattr(simulated, "host_libraries", libraries)
    monkeypatch.setattr(simulated, "host_compiler", lambda torch: SimpleNamespace(identity="c"))
    monkeypatch.setattr(simulated, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(simulated, "built", build)
    request = ExtensionRequest("p.x", (folder / "x.mm",), CompileOptions(), folder / "p")
    simulated.built_or_kept(request, folder)
    (folder / "p" / "x.so").unlink()
    (folder / file).write_text(text)
    simulated.built_or_kept(request, folder)
    assert (folder / "p" / "x.so").read_text() == f"{len(built_for)}"
    assert len(built_for) == builds


@pytest.mark.network  # Apple's declarations are fetched: mpsmith check --setup
def test_a_file_of_c_is_compiled_as_c_beside_objective_cxx_with_openmps_functions(tmp_path: Path) -> None:
    (tmp_path / "twice.c").write_text(
        "#include <stdlib.h>\n"
        "int twice(int class) { int* new = malloc(4); *new = 2 * class; int y = *new; free(new); return y; }\n"
    )
    (tmp_path / "x.mm").write_text(
        'extern "C" int twice(int);\n#include <omp.h>\n#include <mach/mach_time.h>\n'
        "int four() { return mach_absolute_time() ? twice(omp_get_max_threads()) : 0; }\n"
    )
    (tmp_path / "setup.py").write_text(
        "from setuptools import Extension, setup\nsetup(name='x', ext_modules=[Extension('x', ['twice.c', 'x.mm'])])\n"
    )
    (request,) = requests_of(tmp_path).requests
    assert built(request).library.is_file()


def test_a_setup_script_that_fails_or_asks_for_nothing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("raise RuntimeError('no compiler')\n")
    with pytest.raises(ScaffoldError, match=r"setup\.py fails: no compiler"):
        requests_of(tmp_path)
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(name='x')\n")
    with pytest.raises(ScaffoldError, match="asks for no extension module"):
        requests_of(tmp_path)
