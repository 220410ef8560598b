"""The driver's errors as sentences, and memory that goes to the GPU and back."""

from __future__ import annotations

import ctypes
import struct

import pytest
import torch

from mpsmith.simulator.metal.binding import bind
from mpsmith.simulator.nvidia import Driver, NoNvidiaDriverError, NvidiaError, NvidiaTimeoutError, driver
from mpsmith.simulator.nvidia.memory import Constants, copies
from support.fake_cuda import NOT_READY, OUT_OF_MEMORY, FakeCuda


class TestDriverErrors:
    def test_a_machine_without_a_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(driver, "_LIBRARY", "libcuda-that-is-not-there.so.1")
        with pytest.raises(NoNvidiaDriverError, match="no NVIDIA driver on this machine"):
            Driver()

    def test_a_driver_without_a_gpu(self) -> None:
        cuda = FakeCuda()
        cuda.count = 0
        with pytest.raises(NoNvidiaDriverError, match="sees 0 GPUs"):
            Driver(cuda)

    def test_a_driver_that_does_not_start(self) -> None:
        cuda = FakeCuda()
        cuda.results["cuInit"] = 999
        with pytest.raises(NoNvidiaDriverError, match="does not start: error 999"):
            Driver(cuda)

    def test_memory_that_runs_out(self) -> None:
        cuda = FakeCuda()
        gpu = Driver(cuda)
        cuda.results["cuMemAlloc_v2"] = OUT_OF_MEMORY
        with pytest.raises(NvidiaError, match="less than 1,000,000 bytes left"):
            gpu.allocate(1_000_000)

    def test_a_kernel_that_the_gpu_does_not_forgive(self) -> None:
        cuda = FakeCuda()
        gpu = Driver(cuda)
        cuda.results["cuStreamQuery"] = 700
        with pytest.raises(NvidiaError, match=r"error 700 of the fake \(700\); start another process"):
            gpu.wait()

    def test_a_kernel_that_hangs_is_given_up_and_the_gpu_with_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MPSMITH_NVIDIA_TIMEOUT", "0")
        cuda = FakeCuda()
        gpu = Driver(cuda)
        cuda.results["cuStreamQuery"] = NOT_READY
        with pytest.raises(NvidiaTimeoutError, match="did not end within 0 s"):
            gpu.wait()
        with pytest.raises(NvidiaTimeoutError, match="start another process"):
            gpu.allocate(8)

    def test_rejects_a_timeout_that_is_not_a_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MPSMITH_NVIDIA_TIMEOUT", "soon")
        with pytest.raises(NvidiaError, match="must be a number of seconds, not 'soon'"):
            Driver(FakeCuda())


_RECURSIVE = """
.visible .func  (.param .b32 func_retval0) {name}(
	.param .b32 p0
)
{{
	call.uni (retval0), {called}, (param0);
	ret;
}}
.visible .entry nvidia_entry_point() {{
	call.uni (retval0), {name}, (param0);
}}
"""


class TestStack:
    @pytest.mark.parametrize(("called", "grows"), [("log_gamma", True), ("log_gamma_of_one", False)])
    def test_a_recursive_function_gets_more_stack(self, called: str, grows: bool) -> None:
        cuda = FakeCuda()
        Driver(cuda).load(_RECURSIVE.format(name="log_gamma", called=called), "nvidia_entry_point")
        assert cuda.limits == ({0: 8192} if grows else {})


class TestCopies:
    def test_what_a_kernel_writes_comes_back_and_nothing_else(self) -> None:
        x, y = torch.arange(4.0), torch.zeros(4)
        gpu = Driver(FakeCuda())
        buffers = {0: bind(y, 0, None, "cpu", False), 1: bind(x, 1, None, "cpu", False)}
        with copies(gpu, buffers, {0}) as addresses:
            ctypes.memmove(addresses[0], addresses[1], 16)
            ctypes.memset(addresses[1], 0, 16)
        assert y.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]

    def test_tensors_that_overlap_share_a_copy(self) -> None:
        x = torch.arange(8.0)
        buffers = {0: bind(x[2:], 0, None, "cpu", False), 1: bind(x, 1, None, "cpu", False)}
        with copies(Driver(FakeCuda()), buffers, set()) as addresses:
            assert addresses[0] - addresses[1] == 8

    def test_the_word_in_which_a_tensor_ends_is_known_to_its_end(self) -> None:
        cuda = FakeCuda()
        cuda.fill = 0xFF
        x = torch.ones(3, dtype=torch.int16)
        with copies(Driver(cuda), {0: bind(x, 0, None, "cpu", False)}, {0}) as addresses:
            assert ctypes.string_at(addresses[0], 8) == b"\1\0\1\0\1\0\0\0"

    def test_a_list_of_tensors_is_a_table_of_copies(self) -> None:
        tensors = [torch.zeros(2), torch.zeros(3)]
        buffers = {0: bind(tensors, 0, None, "cpu", False)}
        cuda = FakeCuda()
        with copies(Driver(cuda), buffers, set()) as addresses:
            first, second = struct.unpack("<2Q", ctypes.string_at(addresses[0], 16))
            assert {first, second} < set(cuda.memory)
            ctypes.memmove(second, struct.pack("<3f", 1, 2, 3), 12)
        assert tensors[1].tolist() == [1.0, 2.0, 3.0]
        assert not cuda.memory, "every copy is given back"

    def test_numbers_that_come_again_are_copied_once(self) -> None:
        constants = Constants(Driver(FakeCuda()))
        first, again, other = (bind(numbers, 0, None, "cpu", False) for numbers in ([1, 2], [1, 2], [1, 3]))
        assert constants.address(first) == constants.address(again) != constants.address(other)
        assert ctypes.string_at(constants.address(other), 16) == struct.pack("<2q", 1, 3)
