"""Probes of torch.accelerator with mps as the accelerator."""

from __future__ import annotations

import torch

from .probe import DEVICE, Probe, expect


def current_accelerator() -> None:
    """mps is the current accelerator."""
    accelerator = torch.accelerator.current_accelerator()
    expect(accelerator is not None and accelerator.type == DEVICE, f"is {accelerator}")


def device_index() -> None:
    """The first device can be selected in a context."""
    with torch.accelerator.device_index(0):
        expect(torch.accelerator.current_device_index() == 0, "the index inside is not 0")


def current_stream() -> None:
    """There is a current stream of mps, and it can be set again."""
    stream = torch.accelerator.current_stream()
    expect(stream.device.type == DEVICE, f"is on {stream.device}")
    torch.accelerator.set_stream(stream)


def accelerator_memory(name: str) -> Probe:
    """A probe of a function that must return a non-negative number of bytes."""
    return lambda: expect(getattr(torch.accelerator, name)() >= 0, "a negative number of bytes")


def memory_stats() -> None:
    """Statistics are returned by name."""
    expect(isinstance(torch.accelerator.memory_stats(), dict), "no mapping")


def memory_info() -> None:
    """Free and total bytes are returned."""
    free, total = torch.accelerator.get_memory_info()
    expect(0 <= free <= total, f"{free} of {total} bytes free")


def device_capability() -> None:
    """The supported dtypes include float32 and not float64."""
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    expect(torch.float32 in dtypes and torch.float64 not in dtypes, f"its dtypes are {dtypes}")


def accelerator_graph() -> None:
    """A graph can be created."""
    torch.accelerator.Graph()
