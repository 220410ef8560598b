"""Arguments in memory that two processes share, and how they are described."""

import ctypes
import math
import mmap
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho.shared_memory import DTYPES, SharedMemory, pickled, tensors


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    memory = SharedMemory()
    yield memory
    memory.close()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**40,
        -(2**63),
        2**63 - 1,
        1.5,
        -math.inf,
        2 + 3j,
        "mps:0",
        "",
        [],
        [1, [None]],
        (1, "a"),
    ],
)
def test_a_pickled_value_reads_back(value: Any) -> None:
    again = pickle.loads(pickled(value))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6).reshape(2, 3).t(),
        torch.arange(20, dtype=torch.uint8)[3:17:2],
        torch.ones(1, 3, dtype=torch.bfloat16).expand(4, 3),
        torch.empty(0, 3),
        torch.tensor(2 + 1j),
    ],
)
def test_a_placed_tensor_is_the_same(memory: SharedMemory, tensor: torch.Tensor) -> None:
    there = tensors(memory.place(tensor))
    assert torch.equal(there, tensor)
    assert (there.dtype, there.stride()) == (tensor.dtype, tensor.stride())
    assert there.storage_offset() == tensor.storage_offset()
    assert tensor.numel() == 0 or memory.address <= there.data_ptr() < memory.address + (1 << 33)


def test_tensors_in_one_memory_share_it_there(memory: SharedMemory) -> None:
    whole = torch.arange(6.0)
    first, second, other = map(tensors, memory.place([whole, whole[2:], torch.ones(1)]))
    first[2] = 9
    assert second[0] == 9
    assert other[0] == 1
    assert whole[2] == 2
    memory.take_back()  # what a call wrote
    assert whole[2] == 9


def test_zeros_follow_an_argument(memory: SharedMemory) -> None:
    memory.place(torch.full((64,), 7, dtype=torch.uint8))
    memory.forget_arguments()
    _, address, *_ = memory.place(torch.tensor([1, 2], dtype=torch.uint8))
    memory.place(torch.tensor([3], dtype=torch.uint8))
    assert ctypes.string_at(address, 3000) == bytes([1, 2]) + bytes(2998)


def test_the_next_call_begins_where_forgotten_arguments_were(memory: SharedMemory) -> None:
    first = memory.place(torch.ones(3))
    memory.forget_arguments()
    again = torch.zeros(3)
    assert memory.place(again)[1] == first[1]
    assert tensors(memory.place(again))[0] == 0


def test_released_memory_is_zero_and_the_systems_again(memory: SharedMemory) -> None:
    def pages() -> int:
        return os.fstat(memory.file).st_blocks * 512 // mmap.PAGESIZE

    _, address, *_ = memory.place(torch.ones(2**18))
    ctypes.memset(memory.address + 2**32, 1, 2**16)
    assert pages() >= 256 + 16
    memory.forget_arguments()
    memory.release([(memory.address + 2**32, 2**15)])
    assert pages() == 8
    assert ctypes.string_at(address, 4) == bytes(4)
    assert ctypes.string_at(memory.address + 2**32 + 2**15 - 1, 2) == bytes([0, 1])
    memory.release([])  # nothing was placed since
    with pytest.raises(MachOError, match="shared memory at 0x1 is not released: Invalid argument"):
        memory.release([(1, 4096)])


def test_dtypes_layouts_and_memory_formats_are_sent_as_numbers(memory: SharedMemory) -> None:
    assert memory.place([torch.int64, torch.strided, torch.channels_last, torch.device("mps", 0)]) == [4, 0, 2, "mps:0"]
    for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.uint16, torch.float8_e4m3fn):
        described = torch.zeros(1, dtype=dtype)
        assert tensors(memory.place(described)).dtype is dtype
    assert DTYPES[15] == "bfloat16"


@pytest.mark.parametrize("value", [torch.ones(2).to_sparse(), torch._efficientzerotensor(2), object()])
def test_values_that_cannot_be_sent_are_errors(memory: SharedMemory, value: object) -> None:
    with pytest.raises(MachOError, match="cannot be sent to the release's process"):
        memory.place(value)


def test_two_memories_have_their_own_addresses(memory: SharedMemory) -> None:
    other = SharedMemory()
    try:
        assert other.address != memory.address
        assert other.place(torch.ones(1))[1] != memory.place(torch.ones(1))[1]
    finally:
        other.close()
    other.close()  # does nothing
