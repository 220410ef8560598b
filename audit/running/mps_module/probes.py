"""Probes of torch.mps: a small function for each public name, which raises if the name does not work.

A probe restores the state of the process. A name in `surface.public_names` that is not in `TABLE` is reported as not
probed.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .accelerator_probes import (
    accelerator_graph,
    accelerator_memory,
    current_accelerator,
    current_stream,
    device_capability,
    device_index,
    memory_info,
    memory_stats,
)
from .probe import DEVICE, Probed, boolean, expect, ones, refuses, row, true

SOURCE = """
#include <metal_stdlib>
kernel void twice(device float* out, constant float* in, uint i [[thread_position_in_grid]]) { out[i] = 2 * in[i]; }
"""


# ---- memory, synchronisation


def device_count() -> None:
    """There is exactly one device."""
    expect(torch.mps.device_count() == 1, f"counts {torch.mps.device_count()} devices")


def synchronize() -> None:
    """Waits for work, whose result is available afterwards."""
    total = ones().sum()
    torch.mps.synchronize()
    expect(float(total) == 4, "the work before it has another result")


def current_allocated_memory() -> None:
    """Grows by a new tensor's bytes, and shrinks when it is freed."""
    before = torch.mps.current_allocated_memory()
    kept = torch.empty(1 << 20, dtype=torch.uint8, device=DEVICE)
    grown = torch.mps.current_allocated_memory() - before
    expect(grown >= kept.numel(), f"grows by {grown} bytes for a tensor of {kept.numel()}")
    del kept
    expect(torch.mps.current_allocated_memory() <= before, "does not shrink when the tensor is gone")


def driver_allocated_memory() -> None:
    """Is at least the memory of all tensors."""
    kept = ones()
    driver, current = torch.mps.driver_allocated_memory(), torch.mps.current_allocated_memory()
    expect(driver >= current > 0, f"{driver} bytes, while {kept.numel()} elements and others take {current}")


def recommended_max_memory() -> None:
    """Is a plausible number of bytes."""
    expect(torch.mps.recommended_max_memory() > 1 << 28, f"{torch.mps.recommended_max_memory()} bytes")


def empty_cache() -> None:
    """Frees nothing that is in use."""
    kept = ones()
    torch.mps.empty_cache()
    expect(float(kept.sum()) == 4, "a tensor in use has lost its values")


def set_per_process_memory_fraction() -> None:
    """Accepts fractions from 0 to 2 and refuses others."""
    torch.mps.set_per_process_memory_fraction(1.0)
    refuses(lambda: torch.mps.set_per_process_memory_fraction(3.0), ValueError)
    torch.mps.set_per_process_memory_fraction(1.7)  # the default: the allocator's high watermark ratio


# ---- random numbers


def draws() -> list[float]:
    """A few random numbers of the device."""
    numbers: list[float] = torch.rand(4, device=DEVICE).tolist()
    return numbers


def manual_seed() -> None:
    """The same seed gives the same numbers, a different seed different ones."""
    torch.mps.manual_seed(7)
    first = draws()
    torch.mps.manual_seed(7)
    expect(draws() == first, "the same seed gives other numbers")
    torch.mps.manual_seed(8)
    expect(draws() != first, "another seed gives the same numbers")


def seed() -> None:
    """Two calls give two different sequences."""
    torch.mps.seed()
    first = draws()
    torch.mps.seed()
    expect(draws() != first, "two random seeds give the same numbers")


def rng_state() -> None:
    """Restoring a state repeats the numbers that were drawn after it."""
    state = torch.mps.get_rng_state()
    expect(state.dtype is torch.uint8 and state.device.type == "cpu", f"the state is {state.dtype} on {state.device}")
    first = draws()
    torch.mps.set_rng_state(state)
    expect(draws() == first, "the state does not repeat the numbers")


def generator() -> None:
    """A separate generator is reproducible and does not change the default one."""
    state = torch.mps.get_rng_state()
    own = torch.Generator(device=DEVICE).manual_seed(5)
    first = torch.rand(4, device=DEVICE, generator=own).tolist()
    own.manual_seed(5)
    expect(torch.rand(4, device=DEVICE, generator=own).tolist() == first, "the same seed gives other numbers")
    expect(torch.equal(torch.mps.get_rng_state(), state), "it moves the default generator")


def seeded_by_torch() -> None:
    """torch.manual_seed seeds the device as well."""
    torch.manual_seed(3)
    first = draws()
    torch.manual_seed(3)
    expect(draws() == first, "the same seed gives other numbers on mps")


def fork_rng() -> None:
    """Drawing numbers inside does not change the state outside."""
    state = torch.mps.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type=DEVICE):
        draws()
    expect(torch.equal(torch.mps.get_rng_state(), state), "numbers drawn inside move the state outside")


# ---- events


def timed_events() -> tuple[Any, Any]:
    """Two recorded events with work between them."""
    first, second = torch.mps.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
    first.record()
    ones(1000).sum()
    second.record()
    return first, second


def event_synchronize() -> None:
    """The event has completed afterwards."""
    _, second = timed_events()
    second.synchronize()
    expect(second.query() is True, "the event has not passed after synchronize()")


def event_query() -> None:
    """True once the device has finished."""
    first, second = timed_events()
    torch.mps.synchronize()
    expect(first.query() is True and second.query() is True, "the event has not passed although the work has")


def event_wait() -> None:
    """Work after the wait gives the right result."""
    _, second = timed_events()
    second.wait()
    expect(float(ones().sum()) == 4, "work after wait() is wrong")


def event_elapsed_time() -> None:
    """The time between two events, in milliseconds, is not negative."""
    first, second = timed_events()
    second.synchronize()
    expect(first.elapsed_time(second) >= 0, f"{first.elapsed_time(second)} ms")


def stream() -> None:
    """A stream can be created and synchronized."""
    torch.mps.Stream().synchronize()  # type: ignore[attr-defined]


# ---- profiler


def profiler_start_stop() -> None:
    """Tracing starts and stops around work."""
    torch.mps.profiler.start("interval", False)
    try:
        ones().sum()
    finally:
        torch.mps.profiler.stop()


def profiler_profile() -> None:
    """The context manager records intervals and events."""
    with torch.mps.profiler.profile("interval,event", wait_until_completed=True):
        expect(float(ones().sum()) == 4, "work inside is wrong")


def metal_capture() -> None:
    """Writes a trace if capturing is enabled (MTL_CAPTURE_ENABLED=1), and otherwise raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.gputrace")
        if torch.mps.profiler.is_metal_capture_enabled():
            with torch.mps.profiler.metal_capture(str(trace)):
                ones().sum()
            expect(trace.exists(), "no trace was written")
            return
        capturing = torch.mps.profiler.metal_capture(str(trace))
        refuses(capturing.__enter__, RuntimeError)


# ---- kernels


def compile_shader() -> None:
    """A kernel compiles and runs; bad source raises SyntaxError."""
    library = torch.mps.compile_shader(SOURCE)
    out = torch.zeros(4, device=DEVICE)
    library.twice(out, ones())
    expect(out.tolist() == [2.0] * 4, f"the kernel gives {out.tolist()}")
    refuses(lambda: torch.mps.compile_shader("kernel void broken("), SyntaxError)


def load_metallib() -> None:
    """Anything but a Metal library is refused with an error (making a real one requires Apple's compiler)."""
    load: Callable[[bytes], object] = torch.mps.load_metallib
    refuses(lambda: load(b"no metallib"), RuntimeError, ValueError, SyntaxError)


# ---- torch.backends.mps


def is_macos_or_newer() -> None:
    """This system is macOS 13 or newer, but not macOS 999."""
    expect(torch.backends.mps.is_macos_or_newer(13, 0) is True, "this is not macOS 13 or newer")
    expect(torch.backends.mps.is_macos_or_newer(999, 0) is False, "this is macOS 999")


# ---- the device from outside


def default_device() -> None:
    """Tensors without a device are made on the default device."""
    before = torch.get_default_device()
    torch.set_default_device(DEVICE)
    try:
        expect(torch.ones(1).device.type == DEVICE, "a tensor without a device is not on mps")
        expect(torch.get_default_device().type == DEVICE, f"get_default_device is {torch.get_default_device()}")
    finally:
        torch.set_default_device(before)


def autocast() -> None:
    """A matrix product inside is computed in half precision."""
    a = torch.ones(2, 2, device=DEVICE)
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast(DEVICE, dtype=dtype):
            expect((a @ a).dtype is dtype, f"a matrix product is {(a @ a).dtype}, not {dtype}")
    expect((a @ a).dtype is torch.float32, "it stays on after its end")


def grad_scaler() -> None:
    """One training step with scaled gradients, and one that is skipped because of an infinite gradient."""
    weight = ones().requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=16.0)
    for factor, expected in ((1.0, 0.5), (float("inf"), 0.5)):
        optimizer.zero_grad()
        torch.autograd.backward(scaler.scale((weight * factor).sum()))
        scaler.step(optimizer)
        scaler.update()
        expect(weight.tolist() == [expected] * 4, f"the weights are {weight.tolist()}, not {expected}")


def device_module() -> None:
    """torch.get_device_module returns torch.mps."""
    expect(torch.get_device_module(DEVICE) is torch.mps, "it is not torch.mps")


def save_and_load() -> None:
    """A tensor is loaded on mps, or on the CPU if that is requested."""
    file = io.BytesIO()
    torch.save(ones(), file)
    for place in (None, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        expect(loaded.device.type == (place or DEVICE) and float(loaded.sum()) == 4, f"came back on {loaded.device}")


M, E, P, B, A = "torch.mps.", "torch.mps.Event", "torch.mps.profiler.", "torch.backends.mps.", "torch.accelerator."

TABLE: tuple[Probed, ...] = (
    row(f"{M}is_available", lambda: true(torch.mps.is_available)()),
    row(f"{M}device_count", device_count),
    row(f"{M}synchronize", synchronize),
    row(f"{M}current_allocated_memory", current_allocated_memory),
    row(f"{M}driver_allocated_memory", driver_allocated_memory),
    row(f"{M}recommended_max_memory", recommended_max_memory),
    row(f"{M}empty_cache", empty_cache),
    row(f"{M}set_per_process_memory_fraction", set_per_process_memory_fraction),
    row(f"{M}manual_seed", manual_seed),
    row(f"{M}seed", seed),
    row(f"{M}get_rng_state", rng_state),
    row(f"{M}set_rng_state", rng_state),
    row(E, timed_events),
    row(f"{E}.record", timed_events),
    row(f"{E}.wait", event_wait),
    row(f"{E}.query", event_query),
    row(f"{E}.synchronize", event_synchronize),
    row(f"{E}.elapsed_time", event_elapsed_time),
    row(f"{M}Stream", stream),
    row(f"{M}compile_shader", compile_shader),
    row(f"{M}load_metallib", load_metallib),
    row(f"{P}start", profiler_start_stop),
    row(f"{P}stop", profiler_start_stop),
    row(f"{P}profile", profiler_profile),
    row(f"{P}metal_capture", metal_capture),
    row(f"{P}is_metal_capture_enabled", lambda: boolean(torch.mps.profiler.is_metal_capture_enabled)()),
    row(f"{P}is_capturing_metal", lambda: boolean(torch.mps.profiler.is_capturing_metal)()),
    row(f"{B}is_built", lambda: true(torch.backends.mps.is_built)()),
    row(f"{B}is_available", lambda: true(torch.backends.mps.is_available)()),
    row(f"{B}is_macos_or_newer", is_macos_or_newer),
    row(f"{B}is_macos13_or_newer", lambda: boolean(torch.backends.mps.is_macos13_or_newer)()),
    row(f"{B}get_name", lambda: expect(torch.backends.mps.get_name(), "is empty")),
    row(f"{B}get_core_count", lambda: expect(torch.backends.mps.get_core_count() > 0, "no cores")),
    row('torch.Generator(device="mps")', generator, "torch.Generator"),
    row("torch.manual_seed, on mps", seeded_by_torch, "torch.manual_seed"),
    row('torch.random.fork_rng(device_type="mps")', fork_rng, "torch.random.fork_rng"),
    row('torch.set_default_device("mps")', default_device, "torch.set_default_device"),
    row("torch.get_default_device, with mps", default_device, "torch.get_default_device"),
    row('torch.get_device_module("mps")', device_module, "torch.get_device_module"),
    row('torch.autocast("mps")', autocast, "torch.autocast"),
    row('torch.amp.GradScaler("mps")', grad_scaler, "torch.amp.GradScaler"),
    row(
        'torch.amp.is_autocast_available("mps")',
        lambda: true(lambda: torch.amp.is_autocast_available(DEVICE))(),
        "torch.amp.is_autocast_available",
    ),
    row("torch.save and torch.load, of mps tensors", save_and_load, "torch.save"),
    row(f"{A}is_available", lambda: true(torch.accelerator.is_available)()),
    row(f"{A}device_count", lambda: expect(torch.accelerator.device_count() == 1, "not one device")),
    row(f"{A}current_accelerator", current_accelerator),
    row(f"{A}current_device_index", lambda: expect(torch.accelerator.current_device_index() == 0, "is not 0")),
    row(f"{A}current_device_idx", lambda: expect(torch.accelerator.current_device_idx() == 0, "is not 0")),
    row(f"{A}set_device_index", lambda: torch.accelerator.set_device_index(0)),
    row(f"{A}set_device_idx", lambda: torch.accelerator.set_device_idx(0)),
    row(f"{A}device_index", device_index),
    row(f"{A}current_stream", current_stream),
    row(f"{A}set_stream", current_stream),
    row(f"{A}synchronize", lambda: torch.accelerator.synchronize()),
    row(f"{A}empty_cache", lambda: torch.accelerator.empty_cache()),
    row(f"{A}empty_host_cache", lambda: torch.accelerator.empty_host_cache()),
    row(f"{A}memory_allocated", accelerator_memory("memory_allocated")),
    row(f"{A}memory_reserved", accelerator_memory("memory_reserved")),
    row(f"{A}max_memory_allocated", accelerator_memory("max_memory_allocated")),
    row(f"{A}max_memory_reserved", accelerator_memory("max_memory_reserved")),
    row(f"{A}memory_stats", memory_stats),
    row(f"{A}reset_accumulated_memory_stats", lambda: torch.accelerator.reset_accumulated_memory_stats()),
    row(f"{A}reset_peak_memory_stats", lambda: torch.accelerator.reset_peak_memory_stats()),
    row(f"{A}get_memory_info", memory_info),
    row(f"{A}get_device_capability", device_capability),
    row(f"{A}Graph", accelerator_graph),
)
