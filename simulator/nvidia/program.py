"""Compiles the kernels of a Metal program to PTX, one by one; results are cached.

Cached PTX needs no compiler: PTX from one machine runs on another that has only the GPU.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..clang import BuildCache, CompilerMissingError, locate
from ..errors import PtxError
from ..metal.compiler import default_compiler
from ..metal.includes import ProgramSource
from ..metal.translation import Translation, translate
from .compiler import PtxCompiler
from .entry_point import buffer_table, unit

_DECIDING_CODE = (
    *(f"simulator.nvidia.{name}" for name in ("compiler", "entry_point", "program", "include")),
    *("simulator.metal", "metal_limits"),
)
_CACHE_DAYS = 90
# Kernels with barriers or lane exchanges depend on the size of a group.
WAITS = re.compile(r"\b(?:bar(?:rier)?\.|shfl\.|vote\.|activemask|%laneid|%ntid)")
_SHARED = re.compile(r"^\s*(?:\.\w+ )*\.shared (?:\.align \d+ )?\.[bfsu](\d+) [\w$]+(?:\[(\d+)\])?;", re.MULTILINE)


@dataclass(frozen=True)
class Code:
    """The PTX of a kernel.

    Attributes:
        name: the name of the kernel in the program.
        ptx: the PTX for one architecture.
        slots: the buffer index of each parameter, in their order.
        names: the names of these parameters.
        sizes: the bytes that a reference reads, 0 for a pointer.
        writable: whether the kernel may write to them.
        waits: whether the kernel depends on the size of a threadgroup.
        max_threads: the largest threadgroup.
        shared: bytes of threadgroup memory that it declares.
        place: file and line of the kernel.
        compiler: the identity of the compiler.
    """

    name: str
    ptx: str
    slots: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    writable: tuple[bool, ...]
    waits: bool
    max_threads: int
    shared: int
    place: str
    compiler: str


class PtxProgram:
    """The kernels of a Metal program for an architecture."""

    def __init__(self, source: ProgramSource, architecture: str, cache: BuildCache) -> None:
        self._source = source
        self._architecture = architecture
        self._cache = cache
        self._key = fingerprint(fingerprint_of_code(*_DECIDING_CODE), architecture, source.identity)

    @functools.cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels.

        Raises:
            MetalSyntaxError: the program does not compile.
            CompilerMissingError: it is not in the cache, and there is no compiler.
        """
        cached = self._cached(self._key)
        if cached is not None:
            return tuple(cached["kernels"])
        names = list(self._translation.kernels)
        self._store(self._key, {"kernels": names, "compiler": self._compiler.identity})
        return tuple(names)

    def code(self, name: str) -> Code:
        """The PTX of a kernel.

        Raises:
            KeyError: the program has no such kernel.
            PtxError: it cannot be compiled to PTX.
            CompilerMissingError: it is not in the cache, and there is no compiler.
        """
        if name not in self.kernels:
            raise KeyError(name)
        key = fingerprint(self._key, "kernel", name)
        cached = self._cached(key)
        if cached is not None:
            lists = {field: tuple(cached[field]) for field in ("slots", "names", "sizes", "writable")}
            return Code(**{**cached, **lists})
        code = self._compiled(name)
        self._store(key, asdict(code))
        return code

    def _compiled(self, name: str) -> Code:
        kernel = self._translation.kernels[name]
        kernel.require_no_textures()
        place = f"{kernel.location.file}:{kernel.location.line}"
        try:
            ptx = self._compiler.from_metal(unit(self._translation.body, kernel))
        except PtxError as error:
            raise PtxError(f"Metal kernel '{name}' ({place}): {error}") from None
        table = buffer_table(ptx)
        buffers = [argument for argument in kernel.arguments if argument.kind == "buffer"]
        return Code(
            name=name,
            ptx=ptx,
            slots=tuple(argument.index for argument in buffers),
            names=tuple(argument.name for argument in buffers),
            sizes=tuple(table[argument.index][0] for argument in buffers),
            writable=tuple(table[argument.index][1] for argument in buffers),
            waits=WAITS.search(ptx) is not None,
            max_threads=kernel.max_threads,
            shared=sum(-(-int(bits) // 8 * int(count or 1) // 16) * 16 for bits, count in _SHARED.findall(ptx)),
            place=place,
            compiler=self._compiler.identity,
        )

    @functools.cached_property
    def _translation(self) -> Translation:
        return translate(self._source, default_compiler())

    @functools.cached_property
    def _compiler(self) -> PtxCompiler:
        return PtxCompiler(default_compiler().clang, self._architecture)

    def _cached(self, key: str) -> dict[str, Any] | None:
        """The cached content, unless it is from another compiler."""
        entry = self._cache.find(key, ".json")
        if entry is None:
            if locate() is None:
                raise CompilerMissingError(
                    "a Metal program that is not in the cache of PTX, and no compiler: run pip install 'mpsmith[metal]'"
                )
            return None
        content: dict[str, Any] = json.loads(entry[1])
        return content if locate() is None or content["compiler"] == self._compiler.identity else None

    def _store(self, key: str, content: dict[str, Any]) -> None:
        self._cache.store(key, ".json", json.dumps(content).encode())


@functools.cache
def default_cache() -> BuildCache:
    """The user's cache of PTX."""
    cache = BuildCache(cache_folder() / "nvidia")
    cache.discard_old(_CACHE_DAYS)
    return cache
