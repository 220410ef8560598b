"""A generated fault and the call that shows it. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...simulator.device.faults.fault import Fault


@dataclass(frozen=True)
class Trigger:
    """A call that shows a fault, for people.

    Attributes:
        call: the arguments.
        scenario: how it is made.
    """

    call: str
    scenario: str


@dataclass(frozen=True)
class PlantedFault:
    """A generated fault that was seen.

    Attributes:
        number: its place in the sequence that the seed gives.
        class_name: its class.
        fault: what is armed.
        trigger: a call that shows it.
    """

    number: int
    class_name: str
    fault: Fault
    trigger: Trigger

    @property
    def packet(self) -> str:
        """The operator that has it."""
        return packet_of(self.fault.overload)


def packet_of(overload: str) -> str:
    """The operator of an overload, its in-place and functional forms alike: "exp" for "aten::exp_.out"."""
    bare = overload.removeprefix("aten::").split(".")[0]
    return bare if bare.startswith("__") else bare.rstrip("_")
