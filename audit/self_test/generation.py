"""Generates faults from a seed: class, overload, argument, condition and corruption. Each is demonstrated by a call."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...simulator.device.faults import Fault
from .classes import FAULT_CLASSES, FaultClass
from .demonstration import BaseCalls, demonstrate
from .planted import PlantedFault, packet_of
from .schemas import facts_of

# The number of proposals to try for one fault before its class counts as impossible.
PROPOSALS = 400
# The audit itself uses these: with a fault in one of them no tensor reaches the device unchanged.
EVERYWHERE = frozenset({"_local_scalar_dense", "set", "resize", "is_set_to", "view", "as_strided", "_reshape_alias"})


def class_of(number: int, seed: int, classes: Sequence[FaultClass]) -> FaultClass:
    """The class of a fault. Each round over all classes has a different order, determined by the seed."""
    turn, place = divmod(number, len(classes))
    order = list(classes)
    Random(f"{seed}:order:{turn}").shuffle(order)
    return order[place]


def generate(
    number: int,
    seed: int,
    overloads: Sequence[str],
    calls: BaseCalls,
    classes: Sequence[FaultClass] = FAULT_CLASSES,
    attempt: int = 0,
) -> PlantedFault | None:
    """The fault with this number, the same for the same seed and torch; None if its class has none.

    Args:
        number, seed: determine the fault.
        overloads: the names of those with a device kernel.
        calls: the calls to change.
        classes: the classes of faults.
        attempt: selects a different fault for the number if the first one ended its process or repeats another one.
    """
    fault_class = class_of(number, seed, classes)
    rng = Random(f"{seed}:{number}:{attempt}")
    candidates = [name for name in overloads if packet_of(name) not in EVERYWHERE]
    tried = 0
    for _ in range(50 * PROPOSALS):
        overload = rng.choice(candidates)
        proposal = fault_class.propose(facts_of(overload), rng)
        if proposal is None:
            continue
        fault = Fault(overload, *proposal)
        trigger = demonstrate(fault, fault_class.scenario, calls, rng)
        if trigger is not None:
            return PlantedFault(number, fault_class.name, fault, trigger)
        tried += 1
        if tried == PROPOSALS:
            return None
    return None
