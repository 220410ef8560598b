"""The settings of an audit: which cases, in which modes, within which limits. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from ...simulator.opening import DeviceKind

# Every dtype that a tensor on mps can have, by torch's names.
DTYPES: tuple[str, ...] = (
    "float32",
    "float16",
    "bfloat16",
    "complex64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
)


def dtype_position(dtype: str) -> int:
    """The position of a dtype in reports: in the order of DTYPES, and those that mps does not have last."""
    return DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)


class Samples(str, Enum):
    """How many cases of each group are executed."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


class ShippedSamples(str, Enum):
    """How many cases run through shipped kernels, where there are any."""

    DEFAULT = "default"
    ALL = "all"


class MacOS(str, Enum):
    """The version of macOS that host code sees on the simulated device; for older ones it takes different branches."""

    VENTURA = "13.3"
    SONOMA = "14.0"
    SEQUOIA = "15.1"
    TAHOE = "26"


class Shapes(str, Enum):
    """How torch.compile treats the sizes of inputs: as numbers, as symbols, or both, one after the other."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    BOTH = "both"


# Settings that leave a part of an audit's cases out.
NARROWING = ("ops", "dtypes", "sources")


def is_narrowed(settings: Mapping[str, Any]) -> bool:
    """Whether recorded settings left out some operators, dtypes or sources."""
    return any(settings.get(name) for name in NARROWING)


@dataclass(frozen=True)
class Settings:
    """One audit as the user asked for it. What decides the cases and their verdicts is recorded with the results.

    Attributes:
        samples: the sample level.
        seed: makes the inputs; the same seed gives the same cases on every machine.
        ops, dtypes: filters; empty means all.
        device: which mps device.
        profile: for the simulated device, the torch release whose coverage it has; None is the installed one.
        workers: how many processes execute cases.
        timeout: seconds of processor time that one case may take before its process is killed; wall time is limited to
            `time_limit.WALL_FACTOR` times this.
        memory_limit: bytes of data a worker may hold, or 0 for no limit.
        sources: which case sources; empty means the default ones.
        large: whether to add the sources that need very much memory, which are not among the default ones.
        imports: packages to import for operators outside aten, or for their own OpInfos.
        faults: the faults injected into the simulated device, as `simulator.device.faults.Fault` prints them.
        shipped: the torch release whose shipped kernels run on the simulated device; None for the stand-ins alone.
        shipped_samples: how many of the cases use shipped kernels.
        host_code: the folder of a build of PyTorch's host code to run; None for none.
        macos: the version of macOS that host code sees; None for the newest.
        compiled: how torch.compile treats the sizes in every call; None for calls without torch.compile.
    """

    samples: Samples = Samples.DEFAULT
    seed: int = 0
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    device: DeviceKind = DeviceKind.AUTO
    profile: str | None = None
    workers: int = os.cpu_count() or 1
    timeout: float = 60.0
    memory_limit: int = 8 << 30
    sources: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    large: bool = False
    faults: tuple[str, ...] = ()
    shipped: str | None = None
    shipped_samples: ShippedSamples = ShippedSamples.DEFAULT
    host_code: str | None = None
    macos: MacOS | None = None
    compiled: Shapes | None = None

    def recorded(self) -> dict[str, Any]:
        """The settings that decide what is executed, as plain data for the store."""
        fields = asdict(self)
        del fields["workers"], fields["timeout"], fields["memory_limit"]
        for name in ("compiled", "host_code", "macos"):
            if fields[name] is None:
                del fields[name]
        return {name: _plain(value) for name, value in fields.items()}

    @classmethod
    def from_recorded(cls, fields: Mapping[str, Any], **others: Any) -> Settings:
        """The settings of a recorded run; `others` gives those that are not recorded (workers, limits)."""
        return cls(
            samples=Samples(fields["samples"]),
            seed=int(fields["seed"]),
            ops=tuple(fields["ops"]),
            dtypes=tuple(fields["dtypes"]),
            device=DeviceKind(fields["device"]),
            profile=fields["profile"],
            sources=tuple(fields["sources"]),
            imports=tuple(fields["imports"]),
            large=bool(fields.get("large", False)),
            faults=tuple(fields.get("faults", ())),
            shipped=fields.get("shipped"),
            shipped_samples=ShippedSamples(fields.get("shipped_samples", ShippedSamples.DEFAULT)),
            host_code=fields.get("host_code"),
            macos=MacOS(fields["macos"]) if fields.get("macos") else None,
            compiled=Shapes(fields["compiled"]) if fields.get("compiled") else None,
            **others,
        )


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
