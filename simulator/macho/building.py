"""Builds the programs and libraries that run macOS libraries: the loader, the C++ library, the operator driver."""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..clang import Clang, installed
from ..device.build import SOURCE_FOLDER
from ..errors import MachOError
from ..objc.apple.location import STUBS, apple_folder
from ..objc.host_libraries import IMAGE

_HERE = Path(__file__).parent
_LINUX = ("-target", "aarch64-linux-musl")
MACOS = ("-target", "aarch64-macos.14.0")
# The system library and what other libraries define is bound by the loader, which names what is missing.
_LIBRARY = ("-dynamiclib", "-Wl,-undefined,dynamic_lookup")
# Tensors of the simulated device, and files: the wheel asks for neither.
_FOR_LINUX = ("storage.mm", "files.mm")
_WITHOUT_ARC = ("NSObject.mm", "constants.mm")
# Without the stand-ins' <mach-o/getsect.h>, which is for Linux and finds no section: no category would be registered.
_OF_IMAGE = ("-std=c++20", "-O1")
_SYMTAB, _STAB, _PRIVATE_EXTERNAL = 0x2, 0xE0, 0x10
_UNWINDER = (
    "libunwind.cpp",
    "UnwindLevel1.c",
    "UnwindLevel1-gcc-ext.c",
    "UnwindRegistersRestore.S",
    "UnwindRegistersSave.S",
)


def loader() -> Path:
    """The aarch64 Linux program that maps macOS libraries and runs them. Raises MachOError if it does not compile."""
    files = sorted((_HERE / "loader").iterdir())
    sources = [str(path) for path in files if path.suffix == ".c"]
    options = ("-static", "-O2", "-fno-sanitize=all", "-fno-omit-frame-pointer")
    build = partial(_run, "cc", *_LINUX, *options, *sources, "-o")
    return _built("loader", lambda target: build(str(target)), *(path.read_bytes() for path in files))


def cxx_library() -> Path:
    """The C++ library with Apple's layout of types, its runtime and the unwinder, as one. Raises MachOError."""
    return _built("libc++.dylib", _build_cxx_library)


def frameworks() -> Path:
    """The Objective-C runtime, Foundation, Metal that records its calls, and BLAS. Raises MachOError."""
    apple = apple_folder()
    if not apple.is_dir():
        raise MachOError("Apple's declarations are not here: run mpsmith check --setup once")
    objc = _HERE.parent / "objc"
    sources = [path for part in ("runtime", "foundation", "metal") for path in sorted((objc / part).iterdir())]
    units = [path for path in sources if path.suffix in (".cpp", ".mm") and path.name not in _FOR_LINUX]
    own = sorted((_HERE / "host").iterdir())
    units += [path for path in own if path.suffix != ".h"]
    units.sort(key=lambda path: path.name != "image.cpp")  # it registers the classes before other initialisers run
    include = [f"-I{path}" for path in (objc / "include", STUBS, apple)]
    options = ("-std=c++20", "-O2", "-fno-sanitize=all", "-fblocks", "-Wno-everything", *include)

    def build(target: Path) -> None:
        objects = [target.parent / f"{unit.name}.o" for unit in units]
        for unit, compiled in zip(units, objects, strict=True):
            arc = () if unit.suffix == ".cpp" or unit.name in _WITHOUT_ARC else ("-fobjc-arc",)
            given = _OF_IMAGE if unit == IMAGE else (*options, *arc)
            _run("c++", *MACOS, *given, "-c", str(unit), "-o", str(compiled))
        link(objects, target)

    headers = sorted(path for folder in (objc / "include", STUBS) for path in folder.rglob("*.h"))
    return _built("frameworks.dylib", build, *(path.read_bytes() for path in (*sources, *own, *headers)))


def driver(torch: Path) -> Path:
    """The library that calls operators of torch. `torch`: the folder of torch with `include`. Raises MachOError."""
    source = _HERE / "driver.cpp"

    def build(target: Path) -> None:
        compiled = target.with_suffix(".o")
        include = [f"-I{folder}" for folder in _torch_headers(torch)]
        options = ("-std=c++20", "-O2", "-w", "-fno-sanitize=all", *include)
        _run("c++", *MACOS, *options, "-c", str(source), "-o", str(compiled))
        link([compiled], target)

    return _built("driver.dylib", build, source.read_bytes(), str(torch).encode())


def graphs(torch: Path) -> Path:
    """The stand-in for MPSGraph, which computes with the CPU operators of that torch. Raises MachOError."""
    graph, objc = _HERE.parent / "mpsgraph", _HERE.parent / "objc"
    units = [*sorted(graph.glob("*.mm")), _HERE.parent / "upstream" / "host" / "host_work.mm"]
    headers = [*sorted(graph.rglob("*.h")), SOURCE_FOLDER / "lstm_direction.h"]
    folders = (graph / "include", SOURCE_FOLDER, objc / "include", STUBS, apple_folder(), *_torch_headers(torch))
    arc = ("-std=c++20", "-O2", "-fno-sanitize=all", "-fblocks", "-fobjc-arc", "-Wno-everything", "-DFMT_HEADER_ONLY=1")
    options = (*MACOS, *arc, *(f"-I{folder}" for folder in folders))

    def build(target: Path) -> None:
        header, compiled = target.parent / "all.h", target.parent / "all.pch"
        header.write_text(
            "#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>\n#include <ATen/ATen.h>\n"
        )
        _run("c++", *options, "-x", "objective-c++-header", str(header), "-o", str(compiled))
        objects = [target.parent / f"{unit.name}.o" for unit in (*units, IMAGE)]
        for unit, name in zip(units, objects, strict=False):
            _run("c++", *options, "-include-pch", str(compiled), "-c", str(unit), "-o", str(name))
        _run("c++", *MACOS, *_OF_IMAGE, "-c", str(IMAGE), "-o", str(objects[-1]))
        link(objects, target)

    sources = (path.read_bytes() for path in (*units, *headers, IMAGE))
    return _built("mpsgraph.dylib", build, *sources, str(torch).encode())


def _torch_headers(torch: Path) -> tuple[Path, ...]:
    return torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include"


def link(objects: Sequence[Path], target: Path) -> None:
    """Link objects for macOS into a library. Raises MachOError if that fails."""
    _run("cc", *MACOS, *_LIBRARY, *map(str, objects), "-o", str(target))
    if not target.stat().st_size:
        raise MachOError(f"{target.name} does not link: zig wrote an empty file")


def compile_c(source: Path, target: Path) -> None:
    """Compile one C file for macOS into a library without optimising any call away. Raises MachOError."""
    # Without -nostdlib zig links its memcpy, cos and so on.
    options = ("-nostdlib", "-O0", "-D_FORTIFY_SOURCE=0", "-fno-builtin", "-fno-sanitize=all", "-w")
    _run("cc", *MACOS, *_LIBRARY, *options, str(source), "-o", str(target))


def _build_cxx_library(target: Path) -> None:
    folder = target.parent
    sample, unwinder = folder / "sample.cpp", installed().headers / "libunwind"
    sample.write_text("#include <string>\nstd::string text(int number) { return std::to_string(number); }\n")
    _run("c++", *MACOS, "-dynamiclib", str(sample), "-o", str(folder / "sample.dylib"))  # zig builds its libraries
    objects = []
    for name in ("libc++.a", "libc++abi.a"):
        archives = sorted(_zig_cache(installed()).glob(f"o/*/{name}"), key=lambda path: path.stat().st_mtime)
        if not archives:
            raise MachOError(f"this ziglang builds no {name} for macOS; mpsmith knows ziglang 0.17")
        for number, content in enumerate(archive_members(archives[-1].read_bytes())):
            objects.append(folder / f"{name}-{number}.o")
            objects[-1].write_bytes(with_exports(content))
    common = ("-O2", "-fno-sanitize=all", "-funwind-tables", "-D_LIBUNWIND_IS_NATIVE_ONLY", f"-I{unwinder / 'include'}")
    for source in _UNWINDER:
        plus = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++") if source.endswith(".cpp") else ()
        objects.append(folder / f"{source}.o")
        tool = "c++" if plus else "cc"
        _run(tool, *MACOS, *common, *plus, "-c", str(unwinder / "src" / source), "-o", str(objects[-1]))
    link(objects, target)


def archive_members(content: bytes) -> Iterator[bytes]:
    """The object files in an `ar` archive, without its tables of names and symbols."""
    at = 8
    while at + 60 <= len(content):
        name, size = content[at : at + 16].decode("latin-1").strip(), int(content[at + 48 : at + 58])
        body = content[at + 60 : at + 60 + size]
        if name.startswith("#1/"):
            body = body[int(name[3:]) :]
        if body[:4] == b"\xcf\xfa\xed\xfe":
            yield body
        at += 60 + size + size % 2


def with_exports(content: bytes) -> bytes:
    """An object file with its symbols made visible to other libraries: zig hides those of its C++ library."""
    data = bytearray(content)
    at = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<2I", data, at)
        if command == _SYMTAB:
            first, count = struct.unpack_from("<2I", data, at + 8)
            for kind in range(first + 4, first + 4 + 16 * count, 16):
                if not data[kind] & _STAB:
                    data[kind] &= ~_PRIVATE_EXTERNAL
        at += size
    return bytes(data)


def _built(name: str, build: Callable[[Path], None], *sources: bytes) -> Path:
    key = fingerprint(installed().identity, fingerprint_of_code("simulator.macho.building"), *sources)
    folder = cache_folder() / "macho" / key
    target = folder / name
    if target.is_file():
        return target
    print(f"mpsmith: building {name} for arm64 (once)", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as temporary:
        build(Path(temporary) / name)
        (Path(temporary) / name).replace(target)
    return target


def _zig_cache(clang: Clang) -> Path:
    """The folder of the libraries that zig builds for these two systems, separate from those for others."""
    return cache_folder() / "macho" / f"zig-{clang.version}"


def _run(tool: str, *arguments: str) -> None:
    clang = installed()
    done = clang.run(tool, *arguments, cache=_zig_cache(clang))
    if not done.succeeded:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()[-1:]
        raise MachOError(f"{Path(arguments[-1]).name} does not build: {errors[0] if errors else 'zig says nothing'}")
