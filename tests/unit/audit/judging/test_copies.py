"""Copies of inputs, seen from the other side: what is copied, once and for each device, and what is shared."""

from __future__ import annotations

import torch
from torch import Tensor

from mpsmith.audit.judging import transfer
from mpsmith.audit.judging.transfer import move, widened


def test_a_copy_has_just_as_much_storage_as_it_had() -> None:
    storage = torch.arange(10.0)
    ((whole, part), _) = move((torch.ones(3), storage[2:4]), {}, "cpu")
    assert whole.untyped_storage().nbytes() == 12
    assert part.untyped_storage().nbytes() == 40, "what an operator may see beside a view is copied as well"
    assert part.storage_offset() == 2
    assert part.as_strided((10,), (1,), 0).tolist() == list(range(10))


def test_two_tensors_in_one_storage_still_share_it_among_arguments_and_keywords() -> None:
    whole = torch.zeros(4)
    for args, kwargs in (((whole, whole.view(2, 2)), {}), ((whole,), {"other": whole.view(2, 2)})):
        moved, keywords = move(args, kwargs, "cpu")
        first, second = (*moved, *keywords.values())
        first.fill_(5)
        assert second.tolist() == [[5, 5], [5, 5]]
        assert whole.tolist() == [0, 0, 0, 0]
    _, keywords = move((), {"one": whole, "two": whole.view(2, 2)}, "cpu")
    keywords["one"].fill_(5)
    assert keywords["two"].eq(5).all()


def test_only_storages_that_two_tensors_look_into_are_shared() -> None:
    a, b = torch.ones(2), torch.ones(2)
    storages = transfer._shared_storages(((a, a.view(2, 1)), {"b": b, "again": b}))
    assert storages == {a.untyped_storage()._cdata}, "one tensor given twice is one"
    assert transfer._shared_storages(((a, b, torch.eye(2).to_sparse()), {})) == frozenset()
    assert transfer._shared_storages(((a, a.view(2, 1), a.view(1, 2)), {})) == {a.untyped_storage()._cdata}
    assert transfer._shared_storages((a,)) == frozenset()


def test_an_untyped_storage_is_copied_whole() -> None:
    storage = torch.arange(3, dtype=torch.uint8).untyped_storage()
    ((copy,), _) = move((storage,), {}, "cpu")
    assert isinstance(copy, torch.UntypedStorage)
    assert list(copy) == [0, 1, 2]
    assert copy.data_ptr() != storage.data_ptr()


def test_generators_slices_and_devices_are_moved() -> None:
    index = torch.tensor([1])
    seeded, meta = torch.Generator().manual_seed(7), torch.device("meta")
    arguments = (slice(index, 2, index), seeded, torch.device("cpu"), "cpu", meta)
    (cut, generator, device, text, other), _ = move(arguments, {}, "cpu")
    assert cut.start is cut.step
    assert cut.start is not index
    assert (cut.start, cut.stop) == (index, 2)
    assert generator.initial_seed() == 7
    assert generator is not seeded
    assert (device, text, other) == (torch.device("cpu"), "cpu", meta)


def test_only_devices_of_the_host_become_the_device() -> None:
    (cpu, cuda, text), keywords = move((torch.device("cpu"), torch.device("cuda"), "cpu"), {"device": None}, "meta")
    assert (cpu, cuda, text) == (torch.device("meta"), torch.device("cuda"), "cpu")
    assert keywords == {"device": None}


def test_wide_copies_are_copies_each_tensor_once() -> None:
    ones, whole, flag = torch.ones(2), torch.tensor([1]), torch.tensor([True])
    wide = widened([ones, ones, whole, flag, torch.float16, torch.bfloat16, torch.float32, torch.int8])
    assert wide[0] is wide[1]
    assert wide[2] is not whole
    assert wide[2].data_ptr() != whole.data_ptr()
    assert [tensor.dtype for tensor in wide[:4]] == [torch.float64, torch.float64, torch.int64, torch.bool]
    assert wide[4:] == [torch.float64, torch.float64, torch.float64, torch.int8]


def test_every_floating_dtype_has_a_wider_one() -> None:
    assert {
        torch.float16: torch.float64,
        torch.bfloat16: torch.float64,
        torch.float32: torch.float64,
        torch.complex64: torch.complex128,
    } == transfer.WIDER


def test_only_copies_of_tensors_that_required_a_gradient_require_one() -> None:
    plain, leaf, view = torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(4, requires_grad=True)[:2]
    (copies, _) = move((plain, leaf, view), {}, "cpu")
    assert [copy.requires_grad for copy in copies] == [False, True, True]
    assert all(copy.is_leaf for copy in copies)
    wide: list[Tensor] = widened([plain, leaf])
    assert [copy.requires_grad for copy in wide] == [False, True]
