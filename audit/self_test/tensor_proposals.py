"""Proposes faults that depend on a tensor argument: its dtype, layout, size or values.

Each function returns None for an overload that cannot have such a fault. Those with parameters return such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ...simulator.device.faults.fault import Term
from .proposal import Proposal, Propose, any_name, read, term, wrong_values

if TYPE_CHECKING:
    from .schemas import Facts

# Arguments that set the size of the result: above 2^24 it takes gigabytes, too much for one case.
SIZE_ARGUMENTS = ("repeats",)
# Running statistics: a call writes them, but its schema does not say so.
RUNNING_STATISTICS = ("running_mean", "running_var")


def of_input(corrupt: Callable[[str, Random], Term], *conditions: str, alone: bool = False) -> Propose:
    """A fault that depends on one tensor; `alone`: only if the other tensors are contiguous."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        names = read(facts)
        # torch refuses to write to a tensor whose elements overlap, or the result is undefined.
        fitting = [name for name in names if "expanded" not in conditions or name not in facts.written]
        name = any_name(fitting, rng)
        if name is None or facts.random or (alone and len(names) < 2):
            return None
        others = tuple(term("contiguous", other) for other in names if other != name) if alone else ()
        return corrupt(name, rng), (*others, *(term(word, name) for word in conditions))

    return propose


def sized(word: str, *numbers: int, corrupt: Callable[[str, Random], Term] = wrong_values) -> Propose:
    """A fault for tensors above a size."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = any_name(read(facts), rng)
        if name is None or facts.random or facts.view:
            return None
        return corrupt(name, rng), (term(word, name, rng.choice(numbers)),)

    return propose


def special(condition: str, *corruptions: str) -> Propose:
    """A fault for one special value in an argument. In a corruption that ends in "@", the argument's name is added."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = any_name(read(facts), rng)
        if name is None or facts.random or facts.view:
            return None
        word = rng.choice(corruptions)
        return term(word[:-1], name) if word.endswith("@") else term(word), (term(condition, name),)

    return propose


def integers(corrupt: str, bound: int) -> Propose:
    """A fault for integers above a bound."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = any_name([argument for argument in read(facts) if argument not in SIZE_ARGUMENTS], rng)
        if name is None or facts.random or facts.view:
            return None
        return term(corrupt, name), (term("beyond", name, bound),)

    return propose


def one_dtype(dtypes: Sequence[str], *, backward: bool | None = None) -> Propose:
    """Values are wrong for one dtype."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = any_name(read(facts), rng)
        if name is None or facts.random or (backward is not None and facts.backward is not backward):
            return None
        return wrong_values(name, rng), (term("dtype", name, rng.choice(list(dtypes))),)

    return propose


def two_inputs(corrupt: Callable[[str, str, Random], Term], word: str, *, zero_dim: bool = False) -> Propose:
    """A fault that depends on two tensors."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        names = [name for name in read(facts) if name not in facts.lists]
        if facts.random or len(names) < 2:
            return None
        left, right = rng.sample(names, 2)
        more = (term("no_dimension", right),) if zero_dim else ()
        return corrupt(left, right, rng), (*more, term(word, left, right))

    return propose


def shared_storage(facts: Facts, rng: Random) -> Proposal | None:
    """With two views of one storage, the kernel ignores the offset of one."""
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
    """An in-place call with a target of unusual layout does not write the result, or only a part of it."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.written or facts.random:
            return None
        name = rng.choice(facts.written)
        corrupt = rng.choice([term("unwritten", name), term("second_half")])
        return corrupt, (term(rng.choice(conditions), name),)

    return propose


def out_target(*conditions: str) -> Propose:
    """A fault of out= with a tensor of unusual layout."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.outs or facts.random:
            return None
        name = rng.choice(facts.outs)
        corrupt = rng.choice([term("unwritten", name), term("second_half"), term("values")])
        return corrupt, (term(rng.choice(conditions), name),)

    return propose


def out_of_another_dtype(facts: Facts, rng: Random) -> Proposal | None:
    """A fault of out= with a dtype that differs from the first argument's."""
    if not facts.outs or not facts.inputs or facts.random:
        return None
    name = rng.choice(facts.outs)
    return rng.choice([term("values"), term("unwritten", name)]), (term("mixed", facts.inputs[0], name),)


def not_updated(facts: Facts, rng: Random) -> Proposal | None:
    """An argument that the call should write is unchanged: running statistics, optimizer states."""
    names = [name for name in facts.written if name != "self" or len(facts.written) > 1]
    hidden = [name for name in facts.inputs if name in RUNNING_STATISTICS and not facts.backward]
    name = any_name([*names, *hidden], rng)
    return None if name is None else (term("unwritten", name), ())


def backward_of(corrupt: Callable[[str, Random], Term], condition: str) -> Propose:
    """A fault of a backward that depends on its first argument, the incoming gradient."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if not facts.backward or not facts.inputs:
            return None
        name = facts.inputs[0]
        return corrupt(name, rng), (term(condition, name),)

    return propose


def subset_of_gradients(facts: Facts, rng: Random) -> Proposal | None:
    """Values are wrong if only some inputs require a gradient."""
    if not facts.masks or not facts.backward:
        return None
    mask = facts.masks[0]
    return rng.choice([term("values"), term("zeros"), term("raises")]), (term("lacks", mask, rng.randrange(2)),)


def wrong_backward(facts: Facts, rng: Random) -> Proposal | None:
    """A gradient is wrong."""
    return (rng.choice([term("values"), term("zeros"), term("second_half")]), ()) if facts.backward else None
