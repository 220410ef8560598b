"""Checks of given outputs: shape, dtype, device, and overlapping memory."""

from __future__ import annotations

import warnings

import pytest
import torch

from mpsmith.kernels.runtime.elementwise import as_tensors
from mpsmith.kernels.runtime.operands import require_device
from mpsmith.kernels.runtime.outputs import (
    check_outputs,
    empty_results,
    is_ready,
    on_meta,
    overlaps,
    refuse_internal_overlap,
    refuse_overlap,
    refuse_partial_overlap,
    require_castable,
    require_dtype,
    resize_output,
)

aten = torch.ops.aten
SHARED = "refer to a single memory location"


def test_is_ready() -> None:
    output = torch.empty(2, 3, device="meta")  # for one on a GPU
    assert is_ready(output, (2, 3), torch.float32)
    assert is_ready(torch.empty(3, 2, device="meta").t(), [2, 3], torch.float32)
    assert not is_ready(output, (3, 2), torch.float32)
    assert not is_ready(output, (2, 3), torch.float16)
    assert not is_ready(torch.empty(1, 3, device="meta").expand(2, 3), (2, 3), torch.float32)
    assert not is_ready(torch.empty(2, 3), (2, 3), torch.float32)


def test_resize_warns_for_outputs_with_elements() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (torch.empty(0), torch.empty(2, 3)):
            resize_output(quiet, (2, 3))
            assert quiet.shape == (2, 3)
    full = torch.empty(5)
    with pytest.warns(UserWarning, match=r"had shape \[5\], which does not match the required output shape \[2, 3\]"):
        resize_output(full, [2, 3])
    assert full.shape == (2, 3)
    assert full.is_contiguous()


def test_refuses_other_devices_and_dtypes() -> None:
    here, elsewhere = torch.ones(2), torch.ones(2, device="meta")
    require_device(here, {"index": here, "weight": None}, "take")
    with pytest.raises(RuntimeError, match=r"two devices, cpu and meta! \(when checking argument index of take"):
        require_device(here, {"weight": None, "index": elsewhere}, "take")
    require_dtype(here, torch.float32, "take, out")
    with pytest.raises(
        RuntimeError, match=r"take, out: Expected out tensor to have dtype torch.int64, but got torch.f"
    ):
        require_dtype(here, torch.int64, "take, out")


def test_require_castable() -> None:
    require_castable(torch.int64, torch.float16)
    require_castable(torch.float32, torch.bfloat16)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Byte"):
        require_castable(torch.float32, torch.uint8)
    with pytest.raises(RuntimeError, match="ComplexFloat can't be cast to the desired output type Float"):
        require_castable(torch.complex64, torch.float32)


def test_refuses_internal_overlap() -> None:
    refuse_internal_overlap(torch.empty(1, 3).expand(1, 3))
    refuse_internal_overlap(torch.empty(4, 3).t())
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        refuse_internal_overlap(torch.empty(1, 3).expand(2, 3))


def test_refuses_overlap() -> None:
    memory = torch.zeros(10)
    refuse_overlap(memory[:5], memory[5:])
    refuse_overlap(memory[5:], memory[:5])
    refuse_overlap(memory[:4:3], memory[4:])  # its last element is the fourth
    refuse_overlap(memory, torch.zeros(10))
    refuse_overlap(memory[:0], memory)
    refuse_overlap(memory, memory[:0])
    for written, source in (
        (memory, memory),
        (memory[:5], memory[4:]),
        (memory[4:], memory[:5]),
        (memory[2:3], memory),
        (memory.view(2, 5).t(), memory[6:7]),
        (memory.view(torch.int64)[2:3], memory[5:6]),
    ):
        with pytest.raises(RuntimeError, match=SHARED):
            refuse_overlap(written, source)
    refuse_overlap(memory.view(torch.int64)[2:3], memory[6:7])
    refuse_overlap(memory.view(torch.int64)[2:3], memory[3:4])
    refuse_overlap(memory[:5:4], memory[4:])  # of tensors with gaps torch says nothing
    refuse_overlap(memory[4:], memory[:5:4])


def test_refuses_partial_overlap() -> None:
    memory = torch.zeros(4, 4)
    refuse_partial_overlap(memory, memory)
    refuse_partial_overlap(memory[:2], memory[2:])
    refuse_partial_overlap(memory[:, :2], memory[:, 1:3])
    for written, source in ((memory[:3], memory[1:]), (memory, memory.t()), (memory[:2], memory)):
        with pytest.raises(RuntimeError, match=SHARED):
            refuse_partial_overlap(written, source)


def test_overlaps() -> None:
    memory = torch.zeros(4, 4)
    assert not overlaps(memory, memory)
    assert not overlaps(memory[1:], memory[1:])
    assert not overlaps(memory, torch.zeros(4, 4))
    for other in (memory.t(), memory[:, :2], memory[1:], memory.view(torch.int32), memory.view(16)):
        assert overlaps(memory, other)


def test_on_meta() -> None:
    x = torch.ones(4, 6, dtype=torch.float16).t()[::2]
    shadow, number, (inner, *_) = on_meta([x, 3, [x, x]])
    assert (shadow.device.type, shadow.dtype, number) == ("meta", torch.float16, 3)
    assert shadow.shape == inner.shape == x.shape
    assert shadow.stride() == inner.stride() == x.stride()


def test_outputs_get_the_shape_of_the_meta_kernel() -> None:
    x, values, out = torch.ones(3, 4).t(), torch.ones(3, 4).t(), torch.empty(0)
    check_outputs(aten.heaviside.out, [x, values], {"out": out}, [torch.float32])
    assert out.shape == (4, 3)
    with pytest.raises(RuntimeError, match=r"heaviside, out: Expected out tensor to have dtype torch.int64"):
        check_outputs(aten.heaviside.out, [x, values], {"out": out}, [torch.int64])
    check_outputs(aten.special_ndtri.out, [x], {"out": out}, [None])  # a result that is cast may go to any dtype
    with pytest.raises(RuntimeError, match="broadcast a dimension of length 7"):
        check_outputs(aten.heaviside.out, [x, torch.ones(7)], {"out": out}, [torch.float32])


def test_check_outputs_refuses_internal_overlap() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="more than one element"):
        check_outputs(aten.heaviside.out, [x, x], {"out": torch.empty(1, 3).expand(2, 3)}, [torch.float32])


def test_meta_results_are_cached_by_signature() -> None:
    class Sum:
        asked, _schema = 0, aten.sum.IntList_out._schema

        def __call__(self, *args: object, **kwargs: object) -> object:
            Sum.asked += 1
            return aten.sum.IntList_out(*args, **kwargs)

    def check(x: torch.Tensor, dim: int, out: torch.Tensor) -> torch.Size:
        check_outputs(overload, [x, [dim]], {"out": out}, [torch.float32])
        return out.shape

    overload, x = Sum(), torch.ones(2, 3)
    for _ in range(2):
        assert check(x, 1, torch.empty(2)) == check(x, 1, torch.empty(0)) == (2,)
        assert check(x, 0, torch.empty(0)) == check(x.t(), 1, torch.empty(0)) == (3,)
    assert Sum.asked == 4
    for _ in range(2):  # what is refused or warned of is so each time
        with pytest.raises(IndexError):
            check(x, 2, torch.empty(0))
        with pytest.warns(UserWarning, match="resized"):
            assert check(x, 1, torch.empty(5)) == (2,)
    for number, dtype in ((1, torch.int64), (1.0, torch.float32), (True, torch.bool)):
        assert empty_results(aten.full.default, [[2], number], torch.device("cpu"))[0].dtype == dtype


def test_as_tensors() -> None:
    out = torch.empty(2)
    half, whole = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int64)
    assert [x.dtype for x in as_tensors([1.5, half], out)] == [torch.float16] * 2
    assert [x.dtype for x in as_tensors([whole, 2], out)] == [torch.int64, torch.float32]
    assert as_tensors([half, whole], out)[0] is half
