"""Numbers that a key decides, against Philox's published answers and the arithmetic of torch 2.15's CPU kernels.

The running torch may be older than the operators: they are declared as 2.15 does, and reached through its dispatcher.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith import kernels
from mpsmith.kernels.runtime import catalog
from mpsmith.simulator import metal
from support.later_schemas import declared

OPERATORS = tuple(dict.fromkeys(kernel.operator for kernel in catalog.family("stateless_random")))
SEED, OFFSET = 0xA4093822299F31D0, 2**64 - 2


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    metal.install()
    with declared(*OPERATORS), kernels.use(*OPERATORS) as active:
        assert {overload.split(".")[0] for overload in active} == set(OPERATORS)
        yield


def key_of(*words: int) -> Tensor:
    return torch.tensor(words, dtype=torch.uint64).to("mps")


def block(seed: int, counter: int) -> list[int]:
    """Philox4x32-10 in whole numbers (Salmon et al., 2011), of a counter whose upper half is zero."""
    words, key = [counter % 2**32, counter >> 32 & 0xFFFFFFFF, 0, 0], [seed % 2**32, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ key[0], second % 2**32, first >> 32 ^ words[3] ^ key[1], first % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return words


def drawn(seed: int, offset: int, count: int) -> list[int]:
    """So many numbers of 32 bits."""
    blocks = [block(seed, (offset + i) % 2**64) for i in range(-(-count // 4))]
    return [word for words in blocks for word in words][:count]


def call(name: str, out: Tensor, key: Tensor, *limits: Any) -> Tensor:
    result: Tensor = getattr(torch.ops.aten, name)(out, key, *limits)
    return result.cpu()


def test_first_key_equals_the_published_answer() -> None:
    """Random123's kat_vectors: counter and key zero."""
    folded = torch.ops.aten._philox_key_fold_in(key_of(0, 0), 0)
    assert folded.cpu().tolist() == [0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C]
    assert block(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_offsets_wrap_in_split_and_fold_in() -> None:
    keys = key_of(SEED, OFFSET, 7, 2**63).reshape(2, 1, 2)
    split = torch.ops.aten._philox_key_split(keys, 3)
    assert split.shape == (3, 2, 1, 2)
    for at in range(3):
        words = block(SEED, (OFFSET + at) % 2**64)
        assert split.cpu()[at, 0, 0].tolist() == [words[0] | words[1] << 32, words[2] | words[3] << 32]
        for data in (at, key_of(at)):
            assert torch.ops.aten._philox_key_fold_in(keys, data).cpu().tolist() == split.cpu()[at].tolist()
    assert torch.equal(
        torch.ops.aten._philox_key_fold_in(keys, -1), torch.ops.aten._philox_key_fold_in(keys, key_of(2**64 - 1))
    )


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)])
def test_uniform_numbers(dtype: torch.dtype, digits: int) -> None:
    actual = call("_philox_uniform_", torch.empty(3, 7, dtype=dtype, device="mps"), key_of(SEED, OFFSET), -1.3, 2.1)
    units = torch.tensor([word % 2**digits / 2**digits for word in drawn(SEED, OFFSET, 21)])
    low, high = torch.tensor(-1.3, dtype=dtype), torch.tensor(2.1, dtype=dtype)
    expected = units * (high - low).float() + low.float()
    torch.testing.assert_close(actual.reshape(-1), expected.to(dtype), rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_normal_numbers(dtype: torch.dtype) -> None:
    x = call("_philox_normal_", torch.empty(10, dtype=dtype, device="mps"), key_of(SEED, 5), 0.5, 3.0)
    expected = []
    words = drawn(SEED, 5, 12)
    for first, second in zip(words[::2], words[1::2], strict=True):
        radius, angle = math.sqrt(-2 * math.log((first + 0.5) / 2**32)), 2 * math.pi * (second + 0.5) / 2**32
        expected += [radius * math.cos(angle) * 3 + 0.5, radius * math.sin(angle) * 3 + 0.5]
    torch.testing.assert_close(x, torch.tensor(expected[:10]).to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=3e-6)


WHOLE = (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64)


# Of 32 bits an open end makes a range that no draw of 32 bits is fair to: that is refused.
LIMITS = [
    (dtype, limits)
    for dtype in WHOLE
    for limits in ((None, None), (3, 100), (None, 17), (120, None))
    if dtype.itemsize != 4 or limits in ((None, None), (3, 100))
]


@pytest.mark.parametrize(("dtype", "limits"), LIMITS, ids=str)
def test_whole_numbers(dtype: torch.dtype, limits: tuple[int | None, int | None]) -> None:
    actual = call("_philox_randint_", torch.empty(9, dtype=dtype, device="mps"), key_of(SEED, OFFSET), *limits)
    words, info = drawn(SEED, OFFSET, 20), torch.iinfo(dtype)
    if dtype.itemsize == 8:
        words = [high << 32 | low for high, low in zip(words[::2], words[1::2], strict=True)]
    low, high = (info.min if limits[0] is None else limits[0]), (info.max + 1 if limits[1] is None else limits[1])
    numbers = words if limits == (None, None) else [low + word % (high - low) for word in words]
    span = info.max - info.min + 1
    assert actual.tolist() == [(number - info.min) % span + info.min for number in numbers[:9]]


def test_keys_of_a_batch() -> None:
    keys = torch.ops.aten._philox_key_split(key_of(SEED, OFFSET), 6)
    out = torch.empty(2, 5, 3, device="mps").transpose(1, 2)
    batch = keys[:3].reshape(1, 3, 1, 2)
    call("_philox_uniform_", out, batch)
    for i in range(3):
        alone = call("_philox_uniform_", torch.empty(5, device="mps"), keys[i])
        assert torch.equal(out[0, i].cpu(), alone)
        assert torch.equal(out[1, i].cpu(), alone)
    numbers = call("_philox_uniform_", torch.empty(2, 3, device="mps"), keys.reshape(2, 3, 2))
    assert numbers[1, 2] == call("_philox_uniform_", torch.empty((), device="mps"), keys[5])
    assert call("_philox_uniform_", torch.empty(0, 3, device="mps"), keys[0]).shape == (0, 3)


KEY = torch.zeros(2).to(torch.uint64)
ERRORS = {
    "key must have dtype uint64, got torch.int64": ("_philox_uniform_", (torch.empty(3), torch.zeros(2).long())),
    "key must have shape": ("_philox_normal_", (torch.empty(3), torch.zeros(3).to(torch.uint64))),
    "batched key must have ndim": ("_philox_normal_", (torch.empty(3), torch.zeros(3, 1, 2).to(torch.uint64))),
    "is not broadcastable": ("_philox_normal_", (torch.empty(3), torch.zeros(2, 2).to(torch.uint64))),
    "must be a floating point": ("_philox_uniform_", (torch.zeros(3).int(), KEY)),
    "must have an integer dtype": ("_philox_randint_", (torch.zeros(3), KEY)),
    "must be non-empty": ("_philox_randint_", (torch.zeros(3).long(), KEY, 5, 5)),
    "does not divide 2\\^32": ("_philox_randint_", (torch.zeros(3).int(), KEY, 0, 2**28 + 1)),
    "num_splits must be positive": ("_philox_key_split", (KEY, 0)),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    name, arguments = ERRORS[message]
    moved = [argument.to("mps") if isinstance(argument, Tensor) else argument for argument in arguments]
    with pytest.raises(RuntimeError, match=message):
        getattr(torch.ops.aten, name)(*moved)
