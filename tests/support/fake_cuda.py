"""A CUDA driver for tests: its memory is the host's, and a launch is a call of a Python function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

OUT_OF_MEMORY, NOT_READY = 2, 600


class FakeCuda:
    """What `Driver` calls of libcuda. `kernel` is given the parameters' bytes, the groups and the group of a launch."""

    def __init__(self, kernel: Callable[[bytes, tuple[int, ...], tuple[int, ...]], None] | None = None) -> None:
        self.kernel = kernel
        self.count = 1
        self.results: dict[str, int] = {}
        self.memory: dict[int, Any] = {}
        self.limits: dict[int, int] = {}
        self.of_host: dict[int, Any] = {}
        self.loaded: list[tuple[str, dict[int, int]]] = []
        self.max_threads = 1024
        self.fill = 0  # of unwritten memory

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("cu"):
            raise AttributeError(name)
        handler = getattr(self, f"_{name.removesuffix('_v2')}", lambda *arguments: None)

        def call(*arguments: Any) -> int:
            result = self.results.get(name, 0)
            if result == 0:
                handler(*arguments)
            return result

        return call

    def _cuGetErrorString(self, result: int, text: Any) -> None:  # noqa: N802
        text._obj.value = f"error {result} of the fake".encode()

    def _cuDeviceGetCount(self, count: Any) -> None:  # noqa: N802
        count._obj.value = self.count

    def _cuDeviceGetName(self, text: Any, size: int, device: Any) -> None:  # noqa: N802
        text.value = b"Fake GPU"

    def _cuDeviceGetAttribute(self, value: Any, which: int, device: Any) -> None:  # noqa: N802
        value._obj.value = {75: 9, 76: 0}[which]

    def _cuModuleLoadDataEx(self, module: Any, ptx: bytes, count: int, keys: Any, values: Any) -> None:  # noqa: N802
        self.loaded.append((ptx.rstrip(b"\0").decode(), {keys[i]: values[i] for i in range(count)}))

    def _cuFuncGetAttribute(self, value: Any, which: int, function: Any) -> None:  # noqa: N802
        value._obj.value = self.max_threads

    def _cuMemAlloc(self, address: Any, size: Any) -> None:  # noqa: N802
        memory = ctypes.create_string_buffer(size.value)
        ctypes.memset(memory, self.fill, size.value)
        address._obj.value = ctypes.addressof(memory)
        self.memory[address._obj.value] = memory

    def _cuMemFree(self, address: Any) -> None:  # noqa: N802
        del self.memory[address.value]

    def _cuCtxSetLimit(self, which: int, value: Any) -> None:  # noqa: N802
        self.limits[which] = value.value

    def _cuMemHostAlloc(self, address: Any, size: Any, flags: int) -> None:  # noqa: N802
        memory = ctypes.create_string_buffer(size.value)
        address._obj.value = ctypes.addressof(memory)
        self.of_host[address._obj.value] = memory

    def _cuMemHostGetDevicePointer(self, there: Any, here: Any, flags: int) -> None:  # noqa: N802
        there._obj.value = here.value

    def _cuMemcpyHtoD(self, target: Any, source: Any, size: Any) -> None:  # noqa: N802
        ctypes.memmove(target.value, source.value, size.value)

    _cuMemcpyDtoH = _cuMemcpyHtoD  # noqa: N815

    def _cuLaunchKernel(self, function: Any, *arguments: Any) -> None:  # noqa: N802
        groups, group, extra = arguments[:3], arguments[3:6], arguments[9]
        size = ctypes.c_size_t.from_address(extra[3]).value
        if self.kernel is not None:
            self.kernel(ctypes.string_at(extra[1], size), groups, group)
