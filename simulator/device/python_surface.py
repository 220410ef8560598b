"""Replaces functions of torch's C module that `torch.mps` and `torch.backends.mps` need and Linux builds lack."""

from __future__ import annotations

from typing import Any

from . import convolution

# The cores of the largest Mac (M3 Ultra). Inductor splits reductions by this number, and warns below 68.
CORES = 80


def install() -> None:
    """Make torch's Python code support the simulated device: availability, storages, save and load."""
    import torch

    setattr(torch._C, "_has_mps", True)  # noqa: B010
    for name, value in {
        "_mps_get_name": "Simulated mps device",
        "_mps_get_core_count": CORES,
        "_mps_isCaptureEnabled": False,
        "_mps_isCapturing": False,
    }.items():
        if not hasattr(torch._C, name):
            setattr(torch._C, name, _returning(value))
    # It may have been cached before the device existed.
    for question in ("is_available", "is_macos_or_newer", "is_macos13_or_newer"):
        answer: Any = getattr(torch.backends.mps, question, None)
        if hasattr(answer, "cache_clear"):
            answer.cache_clear()
    # This torch is built without functions for storages in mps memory.
    torch.UntypedStorage.mps = _storage_to_mps  # type: ignore[method-assign]
    torch.UntypedStorage.__new__ = _new_storage  # type: ignore[method-assign]
    torch.serialization.register_package(5, _location_tag, _restore)
    convolution.install()


def _returning(value: object) -> Any:
    return lambda *_: value


def _new_storage(cls: Any, *arguments: Any, **options: Any) -> Any:
    """UntypedStorage(size, device="mps"), which copies of storages call; all other calls go to torch."""
    import torch

    size = arguments[0] if arguments else options.get("size", 0)
    if torch.device(options.get("device") or "cpu").type == "mps" and isinstance(size, int):
        return torch.empty(size, dtype=torch.uint8, device="mps").untyped_storage()
    return torch._C.StorageBase.__new__(cls, *arguments, **options)


def _storage_to_mps(storage: Any) -> Any:
    """A copy of the storage in mps memory (bytes), or the storage itself if it is there."""
    import torch

    if storage.device.type == "mps":
        return storage
    copy = torch.empty(storage.nbytes(), dtype=torch.uint8, device="mps")
    copy.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
    return copy.untyped_storage()


def _location_tag(storage: Any) -> str | None:
    return "mps" if storage.device.type == "mps" else None


def _restore(storage: Any, location: str) -> Any:
    return _storage_to_mps(storage) if location.startswith("mps") else None
