"""Builds small torch wheels, Mach-O libraries and Metal libraries, byte by byte, for the tests of their readers."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.metal_libraries import metal_library

RET = 0xD65F03C0
PAGE = 0x1000

IMPL = "__ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"
FALLBACK = "__ZNR5torch7Library9_fallbackEONS_11CppFunctionE"
BOXED_CONSTRUCTOR = "__ZN5torch11CppFunctionC1EN3c1014KernelFunctionENSt3__18optionalE"
UNBOXED_CONSTRUCTOR = "__ZN5torch11CppFunctionC2IFN2at6TensorERKS3_EEPT_"
MPS_FALLBACK = "__ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN2atL12mps_fallbackERKNS_14OperatorHandleE"
REFUSAL = "__ZN2atL23slow_conv2d_forward_mpsERKNS_6TensorE"

YAML = b"""
- func: abs(Tensor self) -> Tensor
  dispatch: {CPU: abs, MPS: abs_mps, SparseMPS: abs_sparse}
- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch: {CPU: sin_out, MPS: sin_out_mps}
- func: sin(Tensor self) -> Tensor
  structured_delegate: sin.out
- func: mode(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)
  dispatch: {CPU: mode}
  autogen: mode.values
- func: embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)
  dispatch: {CPU: embedding_renorm_cpu_}
- func: linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)
- func: _slow_conv2d_forward(Tensor self, Tensor weight) -> Tensor
  dispatch: {CPU: slow_conv2d_forward_cpu}
"""


@dataclass(frozen=True)
class Call:
    """One `m.impl` in an initializer. `reuse`: a boxed function that an earlier call left in a register."""

    name: str
    function: str = "__ZN2at12_GLOBAL__N_112wrapper_MPS_xE"
    constructor: str = UNBOXED_CONSTRUCTOR
    reuse: bool = False


def generated(key: str, number: int, namespace: str = "aten") -> str:
    tail = f"TORCH_LIBRARY_IMPL_init_{namespace}_{key}_{number}"
    return f"__ZN2at12_GLOBAL__N_1{len(tail)}{tail}ERN5torch7LibraryE"


def by_hand(key: str, number: int, namespace: str = "aten") -> str:
    tail = f"TORCH_LIBRARY_IMPL_init_{namespace}_{key}_{number}"
    return f"__ZN2atL{len(tail)}{tail}ERN5torch7LibraryE"


DEFAULT_INITIALIZERS: Mapping[str, Sequence[Call]] = {
    generated("MPS", 1): [Call("abs"), Call("sin.out"), Call("sin")],
    generated("SparseMPS", 1): [Call("abs")],
    generated("AutocastMPS", 4): [Call("aten::linear")],
    by_hand("MPS", 3): [
        Call("embedding_renorm_", MPS_FALLBACK, BOXED_CONSTRUCTOR),
        Call("linalg_svd", MPS_FALLBACK, BOXED_CONSTRUCTOR, reuse=True),
        Call("_slow_conv2d_forward", REFUSAL),
    ],
    generated("CPU", 1): [Call("mode")],
}


def modules(names: Sequence[str]) -> dict[str, bytes]:
    """Some bytes in place of the code of these functions."""
    return {name: f"code of {name}".encode() for name in names}


@dataclass
class MachO:
    """A small arm64 library whose virtual addresses are its file offsets, as in PyTorch's own."""

    initializers: Mapping[str, Sequence[Call]] = field(default_factory=lambda: dict(DEFAULT_INITIALIZERS))
    metal: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"metal_basic": ["abs_dense_float_float"]})
    cpu: int = 0x0100000C
    magic: int = 0xFEEDFACF
    symbols: bool = True

    def build(self) -> bytes:
        code_start = 4 * PAGE
        helpers = [IMPL, FALLBACK, BOXED_CONSTRUCTOR, UNBOXED_CONSTRUCTOR]
        helpers += sorted({call.function for calls in self.initializers.values() for call in calls})
        addresses = {name: code_start + 4 * number for number, name in enumerate(helpers)}
        names = dict.fromkeys(call.name for calls in self.initializers.values() for call in calls)
        # Every call takes at most seven instructions.
        calls = sum(len(calls) for calls in self.initializers.values())
        string_start = _aligned(code_start + 4 * (len(helpers) + 7 * calls + len(self.initializers)))
        strings, texts = b"", {}
        for name in names:
            texts[name] = string_start + len(strings)
            strings += name.encode() + b"\0"
        code = [RET] * len(helpers)
        for symbol, entries in self.initializers.items():
            addresses[symbol] = code_start + 4 * len(code)
            for entry in entries:
                code += self._registration(entry, code_start + 4 * len(code), addresses, texts)
            code.append(RET)
        return self._layout(code_start, code, string_start, strings, addresses)

    @staticmethod
    def _registration(entry: Call, here: int, addresses: Mapping[str, int], texts: Mapping[str, int]) -> list[int]:
        words: list[int] = []
        if not entry.reuse:
            words += load_address(8, here, addresses[entry.function])
        words.append(branch_link(here + 4 * len(words), addresses[entry.constructor]))
        words += load_address(1, here + 4 * len(words), texts[entry.name])
        words.append(branch_link(here + 4 * len(words), addresses[IMPL]))
        return words

    def _layout(
        self, code_start: int, code: Sequence[int], string_start: int, strings: bytes, addresses: Mapping[str, int]
    ) -> bytes:
        body = bytearray(string_start + len(strings))
        body[code_start : code_start + 4 * len(code)] = struct.pack(f"<{len(code)}I", *code)
        body[string_start:] = strings
        sections = [("__text", code_start, 4 * len(code)), ("__cstring", string_start, len(strings))]
        for name, functions in self.metal.items():
            library = metal_library(modules(functions))
            sections.append((name, len(body), len(library)))
            body += library
        names = b"\0" + b"".join(name.encode() + b"\0" for name in addresses)
        entries, at = b"", 1
        for name, address in addresses.items():
            entries += struct.pack("<IBBHQ", at, 0x0E, 1, 0, address)
            at += len(name) + 1
        # A debugging entry and an undefined symbol, which a reader must leave aside.
        entries += struct.pack("<IBBHQ", 1, 0x24, 1, 0, code_start) + struct.pack("<IBBHQ", 1, 0x01, 0, 0, 0)
        symbol_start = len(body)
        commands = [_segment("__TEXT", len(body), sections), _build_version((14, 0), (26, 5))]
        if self.symbols:
            table = (symbol_start, len(addresses) + 2, symbol_start + len(entries), len(names))
            commands.append(struct.pack("<2I4I", 2, 24, *table))
        packed = b"".join(commands)
        header = struct.pack("<8I", self.magic, self.cpu, 0, 6, len(commands), len(packed), 0, 0)
        body[: len(header) + len(packed)] = header + packed
        return bytes(body) + entries + names


def _aligned(value: int) -> int:
    return -(-value // PAGE) * PAGE


def _segment(name: str, size: int, sections: Sequence[tuple[str, int, int]]) -> bytes:
    packed = b"".join(
        struct.pack("<16s16sQQ8I", section.encode(), name.encode(), at, length, at, 0, 0, 0, 0, 0, 0, 0)
        for section, at, length in sections
    )
    fields = struct.pack("<16s4Q4I", name.encode(), 0, size, 0, size, 5, 5, len(sections), 0)
    return struct.pack("<2I", 0x19, 8 + len(fields) + len(packed)) + fields + packed


def _build_version(minimum: tuple[int, int], sdk: tuple[int, int]) -> bytes:
    codes = [major << 16 | minor << 8 for major, minor in (minimum, sdk)]
    return struct.pack("<6I", 0x32, 24, 1, *codes, 0)


def load_address(register: int, here: int, target: int) -> list[int]:
    """ADRP and ADD."""
    pages = (target >> 12) - (here >> 12)
    page = 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register
    return [page, 0x91000000 | (target & 0xFFF) << 10 | register << 5 | register]


def branch_link(here: int, target: int) -> int:
    return 0x94000000 | ((target - here) // 4 & 0x3FFFFFF)


@dataclass
class Wheel:
    """A small torch wheel: everything can be left out or replaced."""

    release: str = "2.99.0"
    project: str = "torch"
    tag: str = "cp312-cp312-macosx_14_0_arm64"
    yaml: bytes | None = YAML
    library: bytes | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    compression: int = zipfile.ZIP_DEFLATED

    def content(self) -> dict[str, bytes]:
        info = f"{self.project}-{self.release}.dist-info"
        content = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {self.project}\nVersion: {self.release}\n".encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: {self.tag}\n".encode(),
        }
        if self.yaml is not None:
            content["torchgen/packaged/ATen/native/native_functions.yaml"] = self.yaml
        if self.library is not None:
            content["torch/lib/libtorch_cpu.dylib"] = self.library
        return content | dict(self.files)

    def packed(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", self.compression) as archive:
            for name, data in self.content().items():
                archive.writestr(name, data)
        return buffer.getvalue()

    def unpack(self, folder: Path) -> Path:
        for name, data in self.content().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a package index are left out unless asked for with `-m network`."""
    if "network" in config.getoption("markexpr"):
        return
    networked = [item for item in items if item.get_closest_marker("network")]
    if networked:
        config.hook.pytest_deselected(items=networked)
        items[:] = [item for item in items if item not in networked]


@pytest.fixture(scope="session")
def build() -> SimpleNamespace:
    """What the tests build with."""
    return SimpleNamespace(
        MachO=MachO,
        Wheel=Wheel,
        Call=Call,
        generated=generated,
        by_hand=by_hand,
        load_address=load_address,
        YAML=YAML,
        FALLBACK=MPS_FALLBACK,
        BOXED_CONSTRUCTOR=BOXED_CONSTRUCTOR,
    )


@pytest.fixture
def wheel_file(tmp_path: Path) -> Callable[[Wheel], Path]:
    """Writes a wheel to disk under its own name."""

    def write(wheel: Wheel) -> Path:
        path = tmp_path / f"{wheel.project}-{wheel.release}-{wheel.tag}.whl"
        path.write_bytes(wheel.packed())
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for this test."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def put_wheel(cache: Path) -> Callable[..., Path]:
    """Puts a wheel with these kernels by library, or with other fields, into the cache, as if it had been fetched."""

    def put(metal: dict[str, list[str]] | None = None, **fields: Any) -> Path:
        library = None if metal is None else MachO(metal=metal).build()
        wheel = Wheel(**{"library": library} | fields)
        path = cache / "wheels" / f"torch-{wheel.release}-{wheel.tag}.whl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wheel.packed())
        return path

    return put
