"""Proposes faults that depend on a tensor argument: its dtype, layout, size or values.

Each function returns None for an overload that cannot have such a fault. Those with parameters return such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ...simulator.device.faults.fault import Term
from .proposal import Proposal, Propose, one, read, term, wrong_values
from .schemas import Facts

# How many elements a result has: beyond 2^24 it takes gigabytes, which no audit has for a case.
COUNTS = ("repeats",)
# Running statistics, which the schema does not say are written.
RUNNING = ("running_mean", "running_var")


def of_input(corrupt: Callable[[str, Random], Term], *conditions: str, alone: bool = False) -> Propose:
    """A fault about one tensor; `alone`: the others are contiguous."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        names = read(facts)
        # Torch refuses to write where two elements have one place, or leaves open what is there then.
        fitting = [name for name in names if "expanded" not in conditions or name not in facts.written]
        name = one(fitting, rng)
        if name is None or facts.random or (alone and len(names) < 2):
            return None
        others = tuple(term("contiguous", other) for other in names if other != name) if alone else ()
        return corrupt(name, rng), (*others, *(term(word, name) for word in conditions))

    return propose


def sized(word: str, *numbers: int, corrupt: Callable[[str, Random], Term] = wrong_values) -> Propose:
    """A fault above a size."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = one(read(facts), rng)
        if name is None or facts.random or facts.view:
            return None
        return corrupt(name, rng), (term(word, name, rng.choice(numbers)),)

    return propose


def special(condition: str, *corruptions: str) -> Propose:
    """A fault about one value in one argument; "word@" takes the argument."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = one(read(facts), rng)
        if name is None or facts.random or facts.view:
            return None
        word = rng.choice(corruptions)
        return term(word[:-1], name) if word.endswith("@") else term(word), (term(condition, name),)

    return propose


def integers(corrupt: str, bound: int) -> Propose:
    """A fault of integers beyond a bound."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = one([each for each in read(facts) if each not in COUNTS], rng)
        if name is None or facts.random or facts.view:
            return None
        return term(corrupt, name), (term("beyond", name, bound),)

    return propose


def one_dtype(dtypes: Sequence[str], *, backward: bool | None = None) -> Propose:
    """Wrong for one dtype."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = one(read(facts), rng)
        if name is None or facts.random or (backward is not None and facts.backward is not backward):
            return None
        return wrong_values(name, rng), (term("dtype", name, rng.choice(list(dtypes))),)

    return propose


def two_inputs(corrupt: Callable[[str, str, Random], Term], word: str, *, zero_dim: bool = False) -> Propose:
    """A fault about two tensors together."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        names = [name for name in read(facts) if name not in facts.lists]
        if facts.random or len(names) < 2:
            return None
        left, right = rng.sample(names, 2)
        more = (term("no_dimension", right),) if zero_dim else ()
        return corrupt(left, right, rng), (*more, term(word, left, right))

    return propose


def shared_storage(facts: Facts, rng: Random) -> Proposal | None:
    """Two views of one storage: one of them is read from its beginning."""
    if facts.random:
        return None
    if facts.lists and rng.random() < 0.6:
        name = rng.choice(facts.lists)
        return rng.choice([term("values"), term("ignores_offset", name)]), (term("shared", name, name),)
    names = [name for name in read(facts) if name not in facts.lists]
    if len(names) < 2:
        return None
    left, right = rng.sample(names, 2)
    return rng.choice([term("values"), term("ignores_offset", right)]), (term("shared", left, right),)


def target(*conditions: str) -> Propose:
    """An in-place call on a target that is laid out oddly: the result is lost, or written in part."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.written or facts.random:
            return None
        name = rng.choice(facts.written)
        corrupt = rng.choice([term("unwritten", name), term("second_half")])
        return corrupt, (term(rng.choice(conditions), name),)

    return propose


def out_target(*conditions: str) -> Propose:
    """out= into a tensor that is laid out oddly."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.outs or facts.random:
            return None
        name = rng.choice(facts.outs)
        corrupt = rng.choice([term("unwritten", name), term("second_half"), term("values")])
        return corrupt, (term(rng.choice(conditions), name),)

    return propose


def out_of_another_dtype(facts: Facts, rng: Random) -> Proposal | None:
    """out= of another dtype than the first argument."""
    if not facts.outs or not facts.inputs or facts.random:
        return None
    name = rng.choice(facts.outs)
    return rng.choice([term("values"), term("unwritten", name)]), (term("mixed", facts.inputs[0], name),)


def not_updated(facts: Facts, rng: Random) -> Proposal | None:
    """An argument that is written besides the result stays as it was: running statistics, states of optimisers."""
    names = [name for name in facts.written if name != "self" or len(facts.written) > 1]
    hidden = [name for name in facts.inputs if name in RUNNING and not facts.backward]
    name = one([*names, *hidden], rng)
    return None if name is None else (term("unwritten", name), ())


def backward_of(corrupt: Callable[[str, Random], Term], condition: str) -> Propose:
    """A fault of a backward about the gradient that it gets, its first argument."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.backward or not facts.inputs:
            return None
        name = facts.inputs[0]
        return corrupt(name, rng), (term(condition, name),)

    return propose


def subset_of_gradients(facts: Facts, rng: Random) -> Proposal | None:
    """Wrong where not all inputs need a gradient."""
    if not facts.masks or not facts.backward:
        return None
    mask = facts.masks[0]
    return rng.choice([term("values"), term("zeros"), term("raises")]), (term("lacks", mask, rng.randrange(2)),)


def wrong_backward(facts: Facts, rng: Random) -> Proposal | None:
    """A gradient is wrong."""
    return (rng.choice([term("values"), term("zeros"), term("second_half")]), ()) if facts.backward else None
