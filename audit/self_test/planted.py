"""A generated fault and the call that shows it. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...simulator.device.faults.fault import Fault


@dataclass(frozen=True)
class Trigger:
    """A description of a call that shows a fault.

    Attributes:
        call: the arguments.
        scenario: how the call is made.
    """

    call: str
    scenario: str


@dataclass(frozen=True)
class PlantedFault:
    """A generated fault that a call has shown.

    Attributes:
        number: its position in the sequence of the seed.
        class_name: its class.
        fault: the fault to inject.
        trigger: a call that shows it.
    """

    number: int
    class_name: str
    fault: Fault
    trigger: Trigger

    @property
    def packet(self) -> str:
        """The operator that has the fault."""
        return packet_of(self.fault.overload)


def packet_of(overload: str) -> str:
    """The operator of an overload, without the suffix of in-place forms: "exp" for "aten::exp_.out"."""
    bare = overload.removeprefix("aten::").split(".")[0]
    return bare if bare.startswith("__") else bare.rstrip("_")
