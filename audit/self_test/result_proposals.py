"""Proposes faults in results: their values, precision, shape and memory, in every call or under a condition."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from .proposal import FLOATS, Proposal, Propose, any_name, read, term

if TYPE_CHECKING:
    from .schemas import Facts

REDUCING = (
    "softmax",
    "sum",
    "prod",
    "mean",
    "norm",
    "cum",
    "max",
    "min",
    "sort",
    "topk",
    "median",
    "any",
    "all",
    "std",
)


def always(*corruptions: str, when: str = "") -> Propose:
    """One of several corruptions, in every call or under a condition that takes no argument."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        if facts.random:
            return None
        return term(rng.choice(corruptions)), (term(when),) if when else ()

    return propose


def rarely(*corruptions: str) -> Propose:
    """One call in a hundred is wrong."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        return None if facts.random else (term(rng.choice(corruptions)), (term("every", 100),))

    return propose


def views(facts: Facts, rng: Random) -> Proposal | None:
    """A view is a copy."""
    return (term("copies"), ()) if facts.view else None


def strides(facts: Facts, rng: Random) -> Proposal | None:
    """The result of an elementwise operator has other strides than PyTorch promises."""
    fits = facts.pointwise and facts.functional and facts.results == 1 and not facts.backward and not facts.view
    return (term("wrong_stride"), ()) if fits else None


def metadata(*corruptions: str) -> Propose:
    """A result has a different shape or dtype."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        return (term(rng.choice(corruptions)), ()) if facts.functional and not facts.view else None

    return propose


def keepdim(facts: Facts, rng: Random) -> Proposal | None:
    """keepdim does not keep the dimension."""
    fits = "keepdim" in facts.flags and facts.functional
    return (term("squeezed"), (term("is", "keepdim", True),)) if fits else None


def aliasing(facts: Facts, rng: Random) -> Proposal | None:
    """A new result shares memory with an argument."""
    return (term("aliases"), ()) if facts.functional and not facts.view and facts.results == 1 else None


def outside(facts: Facts, rng: Random) -> Proposal | None:
    """Writes beyond a target that does not fill its storage."""
    return (term("writes_outside"), ()) if (facts.written or facts.outs) and not facts.random else None


def memory(corruption: str) -> Propose:
    """The memory of results is handled wrongly."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        return (term(corruption), ()) if facts.functional and not facts.view and not facts.random else None

    return propose


def ends_process(corruption: str) -> Propose:
    """Ends the process, in a few calls."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = any_name(read(facts), rng)
        if name is None or facts.random:
            return None
        word = rng.choice(["empty", "expanded", "no_dimension", "stepped", "nan"])
        return term(corruption), (term(word, name), term("dtype", name, "float32"))

    return propose


def fallback(facts: Facts, rng: Random) -> Proposal | None:
    """Runs on the CPU without a warning."""
    return (term("on_cpu"), ()) if facts.functional and not facts.view and facts.inputs and not facts.random else None


def near_tolerance(facts: Facts, rng: Random) -> Proposal | None:
    """One element is off by three times what float32 allows."""
    name = any_name(facts.inputs, rng)
    if name is None or facts.random or not facts.pointwise:
        return None
    return term("near", 3.9e-6, 3e-5), (term("dtype", name, "float32"),)


def variance(facts: Facts, rng: Random) -> Proposal | None:
    """A variance computed as E[x²]-E[x]², where digits cancel if the mean is large."""
    word = any(part in facts.name for part in ("var", "std", "norm_legit", "layer_norm", "group_norm", "batch_norm"))
    name = next((n for n in ("self", "input") if n in facts.inputs), None)
    if not word or name is None or facts.backward:
        return None
    return term("values"), (term("far_mean", name), term("dtype", name, "float32"))


def exponentials(facts: Facts, rng: Random) -> Proposal | None:
    """Exponentials overflow, because the maximum was not subtracted."""
    names = ("softmax", "logcumsumexp", "logaddexp", "log_sigmoid", "softplus", "mish", "sigmoid", "logsumexp")
    name = any_name(facts.inputs, rng)
    if name is None or facts.backward or not any(part in facts.name for part in names):
        return None
    return term("all_nan"), (term("large", name, 90),)


def reduced_in_half(facts: Facts, rng: Random) -> Proposal | None:
    """A long reduction stops growing, because its accumulator has half precision."""
    if facts.random or facts.view or not (facts.reduction or any(part in facts.name for part in REDUCING)):
        return None
    name = any_name(facts.inputs, rng)
    if name is None:
        return None
    return term("only_first", name, 2048), (term("longer", name, 2048), term("dtype", name, rng.choice(FLOATS)))


def near_zero(facts: Facts, rng: Random) -> Proposal | None:
    """The absolute error is the same for small results: log1p computed as log(1+x)."""
    name = any_name(facts.inputs, rng)
    if name is None or facts.random or not facts.pointwise:
        return None
    return term("quantised_near_zero"), (term("near_zero", name, 1e-5), term("dtype", name, "float32"))


def in_half(facts: Facts, rng: Random) -> Proposal | None:
    """float32 is rounded to float16."""
    name = any_name(read(facts), rng)
    if name is None or facts.random or facts.view:
        return None
    return term("through_half", name), (term("dtype", name, "float32"),)


def random(corruption: str) -> Propose:
    """A random operator is faulty in every call."""
    return lambda facts, rng: (term(corruption), ()) if facts.random else None
