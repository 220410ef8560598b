"""Faults by a seed: a class, an overload, an argument, a condition and a corruption, each that can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...simulator.device.faults import Fault
from .classes import FAULT_CLASSES, FaultClass
from .demonstration import BaseCalls, demonstrate
from .planted import PlantedFault, packet_of
from .schemas import facts_of

# Proposals that are looked at for one fault before its class counts as impossible.
PROPOSALS = 400
# What the audit itself is made of: with a fault in these no tensor reaches the device as it is.
EVERYWHERE = frozenset({"_local_scalar_dense", "set", "resize", "is_set_to", "view", "as_strided", "_reshape_alias"})


def class_of(number: int, seed: int, classes: Sequence[FaultClass]) -> FaultClass:
    """The class of a fault: each comes once before any comes again, in an order that the seed gives anew."""
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
    """The fault with a number, the same for the same seed and torch; None where its class gave none.

    Args:
        number, seed: which one.
        overloads: those with a kernel of the device, by name.
        calls: what calls are made of.
        classes: the kinds.
        attempt: makes another one of the same number: the first ended its process, or is there already.
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
