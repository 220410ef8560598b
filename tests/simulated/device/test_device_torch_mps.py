"""What torch.mps and its neighbours offer: memory, random numbers, events, autocast, save and load, refusals."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)


def allocated() -> int:
    gc.collect()
    return torch.mps.current_allocated_memory()


# --- memory


def test_memory_counts_bytes_and_goes_back_to_where_it_was() -> None:
    before = allocated()
    x = torch.empty(1000, dtype=torch.int32, device="mps")
    assert allocated() == before + 4000
    view = x[10:]
    del x
    assert allocated() == before + 4000, "a view keeps the memory"
    del view
    assert allocated() == before


def test_results_resizes_and_replacements_are_accounted_for() -> None:
    before = allocated()
    x = torch.ones(100, device="mps") + 1
    x.resize_(200)
    x.set_(torch.ones(50, device="mps"))
    x.data = torch.zeros(7, device="mps").cumsum(0)
    indices = x.nonzero()
    s = torch.eye(5, device="mps").to_sparse()
    del x, indices, s
    assert allocated() == before


def test_training_leaves_no_bytes_behind(fallback_enabled: None) -> None:
    before = allocated()
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten()).to("mps")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(50):
        y = model(torch.rand(4, 1, 6, 6, device="mps"))
        torch.heaviside(y.detach(), y.detach())
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()
    del model, optimizer, y
    assert allocated() == before


def test_threads_allocate_and_free_without_losing_count() -> None:
    before = allocated()

    def work() -> None:
        for size in range(1, 200):
            torch.ones(size, device="mps").add(1).mul_(2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allocated() == before


def test_the_other_memory_questions_have_answers() -> None:
    assert torch.mps.driver_allocated_memory() == torch.mps.current_allocated_memory()
    assert torch.mps.recommended_max_memory() > 2**28
    torch.mps.empty_cache()
    torch.mps.synchronize()


@pytest.mark.parametrize("elements", [2**59, 2**63 - 1])
def test_memory_that_is_not_there_is_an_error(elements: int) -> None:
    before = allocated()
    with pytest.raises(torch.OutOfMemoryError, match="MPS backend out of memory"):
        torch.empty(elements, device="mps", dtype=torch.uint8)
    x = torch.ones(3, device="mps", dtype=torch.uint8)
    with pytest.raises(torch.OutOfMemoryError, match="MPS backend out of memory"):
        x.resize_(elements)
    assert x.tolist() == [1, 1, 1]
    del x
    assert allocated() == before


def test_the_memory_fraction_is_a_limit_and_zero_lifts_it() -> None:
    """The smallest fraction of the smallest machine is still above what other tests hold."""
    one_percent = torch.mps.recommended_max_memory() // 100
    torch.mps.set_per_process_memory_fraction(0.01)
    try:
        kept = torch.empty(one_percent // 2, dtype=torch.uint8, device="mps")
        with pytest.raises(
            torch.OutOfMemoryError, match=r"out of memory \(MPS allocated: .*, max allowed: .*\)\. Tried"
        ):
            torch.empty(one_percent // 4 * 3, dtype=torch.uint8, device="mps")
        with pytest.raises(torch.OutOfMemoryError):
            kept.resize_(one_percent * 2)
        assert kept.fill_(1).sum().item() == one_percent // 2
    finally:
        torch.mps.set_per_process_memory_fraction(0.0)
    torch.empty(one_percent * 2, dtype=torch.uint8, device="mps")


# --- random numbers


def test_a_seed_gives_the_same_numbers_again() -> None:
    torch.manual_seed(5)
    first = torch.rand(3, device="mps")
    torch.mps.manual_seed(5)
    assert torch.equal(first, torch.rand(3, device="mps"))
    assert not torch.equal(first, torch.rand(3, device="mps"))


def test_the_device_and_the_cpu_have_separate_random_sequences() -> None:
    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    torch.rand(100, device="mps")
    torch.native_dropout(torch.ones(100, device="mps"), 0.5, True)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(
    "dropout",
    [torch.nn.functional.dropout, lambda x: torch.native_dropout(x, 0.5, True)[0]],
    ids=["composite", "without a generator argument"],
)
def test_dropout_draws_from_the_device_and_moves_on(dropout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.ones(1000, device="mps")
    torch.mps.manual_seed(1)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    torch.mps.manual_seed(1)
    torch.rand(100)
    assert torch.equal(first, dropout(x))


def test_the_state_can_be_kept_and_put_back() -> None:
    state = torch.mps.get_rng_state()
    first = torch.randn(3, device="mps")
    torch.mps.set_rng_state(state)
    assert torch.equal(first, torch.randn(3, device="mps"))
    with torch.random.fork_rng(devices=[0], device_type="mps"):
        inside = torch.randn(3, device="mps")
    assert torch.equal(inside, torch.randn(3, device="mps"))


def test_generators_of_the_device() -> None:
    generator = torch.Generator(device="mps").manual_seed(3)
    assert generator.device == torch.device("mps", 0)
    assert generator.initial_seed() == 3
    first = torch.rand(3, device="mps", generator=generator)
    copied = generator.clone_state()
    second = torch.rand(3, device="mps", generator=generator)
    assert torch.equal(second, torch.rand(3, device="mps", generator=copied))
    generator.manual_seed(3)
    assert torch.equal(first, torch.rand(3, device="mps", generator=generator))


def test_a_cpu_generator_is_refused_for_the_device() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'mps' device type for generator but found 'cpu'"):
        torch.rand(3, device="mps", generator=torch.Generator())


def test_the_offset_counts_the_operators_that_drew() -> None:
    torch.mps.manual_seed(230)
    default = torch.mps._get_default_mps_generator()
    torch.randn(5, device="mps")
    torch.randn(500, device="mps")
    assert default.get_offset() == 2
    torch.nn.functional.dropout(torch.ones(3, device="mps"), 0.5)
    torch.native_dropout(torch.ones(3, device="mps"), 0.5, True)
    torch.ones(3, device="mps").add(1)
    assert default.get_offset() == 4
    torch.mps.manual_seed(230)
    assert default.get_offset() == 0


def test_calls_without_random_numbers_keep_the_offset() -> None:
    torch.mps.manual_seed(7)
    default = torch.mps._get_default_mps_generator()
    state = default.get_state()
    torch.rand(0, device="mps")
    torch.native_dropout(torch.ones(0, device="mps"), 0.5, True)
    with pytest.raises(RuntimeError):
        torch.ones(3, device="mps", dtype=torch.int64).normal_()
    assert default.get_offset() == 0
    assert torch.equal(default.get_state(), state)


def test_an_offset_can_be_set_and_gives_the_same_numbers_again() -> None:
    generator = torch.Generator("mps")
    generator.set_offset(4)
    assert generator.get_offset() == 4
    fifth = torch.rand(3, device="mps", generator=generator)
    assert generator.get_offset() == 5
    assert not torch.equal(fifth, torch.rand(3, device="mps", generator=generator))
    generator.set_offset(4)
    assert torch.equal(fifth, torch.rand(3, device="mps", generator=generator))


def test_the_state_is_that_of_a_mac() -> None:
    """Seven words of the engine (its keys last), the seed and the offset."""
    seed = 0x0123456789ABCDEF
    generator = torch.Generator("mps").manual_seed(seed)
    fresh = generator.get_state().numpy()
    assert fresh[:28].view(np.uint32).tolist() == [1, 1, 1, 1, 1, 0x89ABCDEF, 0x01234567]
    assert fresh[28:].view(np.uint64).tolist() == [seed, 0]
    torch.rand(3, device="mps", generator=generator)
    drawn = generator.get_state().numpy()
    # Philox 4x32-10 of counter 0 and this key.
    assert drawn[:28].view(np.uint32).tolist() != fresh[:28].view(np.uint32).tolist()
    assert drawn[28:].view(np.uint64).tolist() == [seed, 1]
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        generator.set_state(torch.get_rng_state())


def test_seeds_that_differ_in_their_upper_half_give_other_numbers() -> None:
    def second(seed: int) -> torch.Tensor:
        generator = torch.Generator("mps").manual_seed(seed)
        torch.rand(1, device="mps", generator=generator)
        return torch.rand(3, device="mps", generator=generator)

    assert not torch.equal(second(7), second(7 + 2**32))


# --- events and streams


def test_events_measure_time() -> None:
    start, end = (torch.mps.event.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.ones(10, device="mps").sum()
    end.record()
    end.synchronize()
    start.wait()
    assert end.query()
    assert 0 < start.elapsed_time(end) < 60_000


def test_an_event_that_was_not_recorded_or_not_timed_is_an_error() -> None:
    timed = [torch.mps.event.Event(enable_timing=True) for _ in range(2)]
    with pytest.raises(RuntimeError, match="must be recorded"):
        timed[0].elapsed_time(timed[1])
    plain = torch.mps.event.Event()
    plain.record()
    timed[0].record()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        timed[0].elapsed_time(plain)


def test_events_and_streams_of_torch_itself() -> None:
    start, end = (torch.Event("mps", enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 0
    assert end.query()
    stream = torch.Stream("mps")
    stream.synchronize()
    assert stream.device.type == "mps"
    assert torch.accelerator.device_count() == 1
    torch.accelerator.synchronize()


# --- autocast


def test_autocast_picks_half_precision_and_leaves_again() -> None:
    x = torch.rand(3, 3, device="mps")
    with torch.autocast("mps", dtype=torch.float16):
        product = x @ x
        total = torch.nn.functional.mse_loss(product, product)
    assert (product.dtype, total.dtype, (x @ x).dtype) == (torch.float16, torch.float32, torch.float32)


def test_autocast_on_the_cpu_does_not_reach_into_the_device() -> None:
    x = torch.rand(3, 3, device="mps")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = torch.nn.functional.linear(x, x)
    assert product.dtype == torch.float32
    torch.testing.assert_close(product.cpu(), torch.nn.functional.linear(x.cpu(), x.cpu()))


# --- save, load, copy


@pytest.mark.parametrize("location", ["mps", "cpu", "mps:0", None])
def test_save_and_load(tmp_path: Path, location: str | None) -> None:
    x = torch.arange(6.0, device="mps")
    torch.save({"x": x, "view": x.view(2, 3)[1], "half": x.half()}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", map_location=location, weights_only=True)
    assert {value.device.type for value in loaded.values()} == {(location or "mps").split(":")[0]}
    assert loaded["view"].tolist() == [3, 4, 5]
    loaded["x"].zero_()
    assert loaded["view"].tolist() == [0, 0, 0], "loaded views share memory"


def test_a_cpu_file_loads_onto_the_device() -> None:
    file = io.BytesIO()
    torch.save(torch.nn.Linear(2, 2).state_dict(), file)
    file.seek(0)
    state = torch.load(file, map_location="mps")
    model = torch.nn.Linear(2, 2).to("mps")
    model.load_state_dict(state)
    assert torch.equal(model.weight, state["weight"])


def test_pickle_and_deepcopy() -> None:
    x = torch.arange(3.0, device="mps", requires_grad=True)
    pickled = pickle.loads(pickle.dumps(x))
    model = copy.deepcopy(torch.nn.Linear(2, 2).to("mps"))
    assert pickled.device == x.device
    assert pickled.tolist() == [0, 1, 2]
    assert copy.deepcopy(x).requires_grad
    assert model.weight.device.type == "mps"


def test_storages_are_made_copied_and_moved() -> None:
    x = torch.tensor([1, 2], dtype=torch.uint8, device="mps")
    copied = copy.deepcopy(x.untyped_storage())
    x.zero_()
    assert copied.device.type == "mps"
    assert copied.tolist() == copied.cpu().tolist() == copied.cpu().mps().tolist() == [1, 2]
    assert torch.UntypedStorage(8, device="mps").nbytes() == 8
    assert torch.UntypedStorage(8).device.type == torch.UntypedStorage([1, 2]).device.type == "cpu"


def test_copies_between_devices() -> None:
    x = torch.arange(4, dtype=torch.float64)
    y = torch.empty(4, device="mps").copy_(x)
    assert y.tolist() == [0, 1, 2, 3]
    assert y.cpu().double().equal(x)
    assert y.to("cpu", torch.int64).tolist() == [0, 1, 2, 3]
    assert torch.empty(4, dtype=torch.float64).copy_(y).equal(x)
    assert torch.from_numpy(np.arange(3, dtype=np.float32)).to("mps").tolist() == [0, 1, 2]
    assert torch.tensor([1, 2], device="mps").cpu().numpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="can't convert mps:0 device type tensor to numpy"):
        y.numpy()


def test_printing() -> None:
    assert repr(torch.tensor([1.5, 2.0], device="mps")) == "tensor([1.5000, 2.0000], device='mps:0')"


# --- what mps refuses


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, dtype=torch.float64, device="mps"),
        lambda: torch.ones(2, dtype=torch.float64).to("mps"),
        lambda: torch.ones(2, device="mps").double(),
        lambda: torch.tensor(np.ones(2), device="mps"),
        lambda: torch.as_tensor(np.ones(2), device="mps"),
        lambda: torch.empty_strided((2,), (1,), dtype=torch.float64, device="mps"),
        lambda: torch.ones(2, device="mps").sum(dtype=torch.float64),
        lambda: torch.nn.Linear(2, 2).double().to("mps"),
    ],
)
def test_float64_is_refused(make: object) -> None:
    with pytest.raises(TypeError) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value) == FLOAT64


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, dtype=torch.complex128, device="mps"),
        lambda: torch.zeros(2, dtype=torch.cdouble, device="mps"),
        lambda: torch.full((2,), 1j, dtype=torch.cdouble, device="mps"),
        lambda: torch.ones(2, device="mps").cdouble(),
        lambda: torch.ones(2, dtype=torch.complex64, device="mps").to(torch.complex128),
        lambda: torch.empty(2, dtype=torch.complex128, device="mps").exp(),
        lambda: torch.add(torch.ones(2, dtype=torch.complex128).to("mps"), 1),
        lambda: torch.ones(2, dtype=torch.complex128).to("mps").to(torch.complex64),
        lambda: torch.empty(2, dtype=torch.complex128, device="mps").copy_(torch.ones(2)),
    ],
)
def test_complex128_is_refused_by_operators(make: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(TypeError, match="Trying to convert ComplexDouble to the MPS backend but it does not have supp"):
        make()


def test_complex128_is_kept_viewed_and_copied_as_bytes() -> None:
    numbers = torch.tensor([1j, 2 + 3j, 4], dtype=torch.complex128)
    there = numbers.to("mps")
    assert there.device.type == "mps"
    assert torch.equal(there.cpu(), numbers)
    assert torch.equal(there.clone().view(3, 1)[1:].cpu(), numbers.view(3, 1)[1:])


@pytest.mark.parametrize(
    ("weights", "result"),
    [
        *[(dtype, torch.int32) for dtype in (torch.int8, torch.int32, torch.int64, torch.uint8, torch.bfloat16)],
        (torch.float32, torch.float32),
        (torch.float16, torch.float16),
        (None, torch.int64),
    ],
)
def test_bincount_adds_up_in_the_dtype_of_the_weights(weights: torch.dtype | None, result: torch.dtype) -> None:
    bins = torch.tensor([0, 1, 1], device="mps")
    counted = torch.bincount(bins, None if weights is None else torch.tensor([1, 2, 3], device="mps", dtype=weights))
    assert counted.dtype is result
    assert counted.tolist() == ([1, 2] if weights is None else [1, 5])


def test_bincount_of_nothing_counts_in_int64() -> None:
    nothing = torch.tensor([], dtype=torch.int64, device="mps")
    counted = torch.bincount(nothing, torch.tensor([], device="mps"), minlength=2)
    assert (counted.dtype, counted.tolist()) == (torch.int64, [0, 0])


def test_too_many_dimensions_are_refused() -> None:
    with pytest.raises(RuntimeError, match="MPS supports tensors with dimensions <= 16, but got 17"):
        torch.empty((1,) * 17, device="mps")


def test_tensors_of_two_devices_do_not_mix_unless_one_is_a_number() -> None:
    x = torch.ones(2, device="mps")
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devi"
    ):
        torch.add(x, torch.ones(2))
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([x, torch.ones(2)])
    assert torch.add(x, torch.tensor(2.0)).tolist() == [3, 3]
    assert x[torch.tensor([0, 1])].tolist() == [1, 1]


def test_a_convolution_of_a_cpu_tensor_with_mps_weights_names_both_devices() -> None:
    text = r"^slow_conv2d_forward_mps: input\(device='cpu'\) and weight\(device=mps:0'\)  must be on the same device$"
    with pytest.raises(RuntimeError, match=text):
        functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3, device="mps"))
    with pytest.raises(RuntimeError, match=text):
        functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 3, device="mps"))


def test_a_cpu_tensor_takes_no_indices_from_the_device() -> None:
    text = r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)"
    index = torch.tensor([0, 1], device="mps")
    with pytest.raises(RuntimeError, match=text):
        torch.ones(3)[index]
    with pytest.raises(RuntimeError, match=text):
        torch.ones(3)[index] = 2.0


def test_layouts_that_are_not_simulated_say_so() -> None:
    with pytest.raises(RuntimeError, match="Could not run 'new_compressed_tensor' from the 'mps:0' device"):
        torch.sparse_csr_tensor([0, 1], [0], [1.0], device="mps")


@pytest.fixture(autouse=True)
def no_seed_leaks() -> Iterator[None]:
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


# --- the system


def test_the_device_runs_on_a_macos_of_this_time() -> None:
    assert torch.backends.mps.is_macos_or_newer(15, 0)
    assert not torch.backends.mps.is_macos_or_newer(999, 0)
