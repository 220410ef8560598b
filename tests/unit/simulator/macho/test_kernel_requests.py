"""Requests of host code in another process, answered without that process."""

import ctypes
import struct

import torch

from mpsmith.simulator.macho.kernel_requests import KernelRequests
from mpsmith.simulator.objc.bridge import MetalBinding, MetalLaunch, launches
from support.needs import needs_metal_on_host

SOURCE = b"""#include <metal_stdlib>
kernel void twice(device float* values [[buffer(0)]], constant int& from [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
  if (int(i) >= from) values[i] *= 2;
}
"""


class NoKernels:
    """A release without kernels."""

    names = ("only",)


def answered(requests: KernelRequests, kind: str, request: bytes = b"") -> tuple[bool, bytes]:
    answer = requests.answer(kind, request)
    failed, size = struct.unpack_from("<2Q", answer)
    assert len(answer) == 16 + size
    return bool(failed), answer[16:]


def test_a_kernel_is_compiled_described_and_launched() -> None:
    needs_metal_on_host()
    requests = KernelRequests(NoKernels())  # type: ignore[arg-type]
    failed, library = answered(requests, "compile", SOURCE)
    assert not failed, library
    assert answered(requests, "names", library) == (False, b"twice\0")
    failed, described = answered(requests, "kernel", library + b"twice")
    assert not failed
    number, threads, _, count, *rows = struct.unpack_from("<8Q", described)
    assert threads >= 32
    assert (count, rows) == (2, [0, 0, 3, 4])  # index, and the bytes that a reference reads
    assert described[64:] == b"values\nfrom\n\0"

    values, start = torch.ones(4), torch.tensor([1], dtype=torch.int32)
    bindings = [
        MetalBinding(index, tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes)
        for index, tensor in ((0, values), (3, start))
    ]
    launch = MetalLaunch((4, 1, 1), (4, 1, 1))
    launch.binding_count = 2
    before = launches()
    message = struct.pack("<Q", number) + bytes(launch) + b"".join(map(bytes, bindings))
    assert answered(requests, "launch", message) == (False, b"")
    assert values.tolist() == [1, 2, 2, 2]
    assert launches() == before + 1
    assert answered(requests, "launch", struct.pack("<Q", 1 << 20) + message[8:])[0]  # no such kernel


def test_failed_requests_are_answered_with_a_message() -> None:
    requests = KernelRequests(NoKernels())  # type: ignore[arg-type]
    assert answered(requests, "compile", b"kernel void broken(")[0]
    failed, library = answered(requests, "load")
    assert not failed
    failed, message = answered(requests, "kernel", library + b"absent")
    assert failed
    assert message
    assert answered(requests, "specialize", library + b"not three columns")[0]
    assert answered(requests, "nonsense", library) == (True, b"'nonsense' is not a request")
    assert ctypes.sizeof(MetalBinding) == 48
