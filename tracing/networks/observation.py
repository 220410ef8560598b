"""The observation of one network in one mode, as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Mode(str, Enum):
    """How a network is run."""

    inference = "inference"
    training = "training"
    float16 = "autocast float16"
    bfloat16 = "autocast bfloat16"
    compile = "torch.compile"

    @property
    def is_specific_to_release(self) -> bool:
        """Whether the called operators depend on the release of torch that runs."""
        return self is Mode.compile


class NetworkOutcome(str, Enum):
    """The outcome of a run."""

    ran = "ran"
    failed = "failed"
    timeout = "time-out"
    died = "died"
    not_installed = "not installed"


@dataclass(frozen=True)
class Called:
    """The overloads that reached the device, by name (`aten::add.Tensor`).

    Attributes:
        native: those with an mps kernel, views included, with their numbers of calls.
        fell_back: those that ran on the CPU, with their numbers of calls.
        composite: those that are composed of others, which are counted themselves.
    """

    native: Mapping[str, int] = field(default_factory=dict)
    fell_back: Mapping[str, int] = field(default_factory=dict)
    composite: tuple[str, ...] = ()

    @property
    def overloads(self) -> frozenset[str]:
        """All of them."""
        return frozenset((*self.native, *self.fell_back, *self.composite))


@dataclass(frozen=True)
class NetworkObservation:
    """One network in one mode.

    Attributes:
        network: its name in the catalogue, or `module:function` of the user's own.
        outcome, reason: the outcome, and why it did not finish.
        release: the torch that ran, or whose coverage the simulated device had; `simulated` whether it was simulated.
        called: what was called until the end, or until it failed.
        with_kernels: likewise after `import mpsmith.kernels`; None if nothing had fallen back.
        kernels_reason: why the run with the kernels did not come to its end, or "".
        generated: how many Metal kernels torch.compile generated; `breaks` why it broke the graph.
        seconds: how long it took, both runs and building the network together.
    """

    network: str
    mode: Mode
    outcome: NetworkOutcome
    reason: str = ""
    release: str = ""
    simulated: bool = True
    called: Called = field(default_factory=Called)
    with_kernels: Called | None = None
    kernels_reason: str = ""
    generated: int = 0
    breaks: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As data for JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkObservation:
        """The observation that `to_json` converted."""
        after = data["with_kernels"]
        return cls(
            **{
                **data,
                "mode": Mode(data["mode"]),
                "outcome": NetworkOutcome(data["outcome"]),
                "called": _called(data["called"]),
                "with_kernels": None if after is None else _called(after),
                "breaks": tuple(data["breaks"]),
            }
        )


def _called(data: Mapping[str, Any]) -> Called:
    return Called(data["native"], data["fell_back"], tuple(data["composite"]))
