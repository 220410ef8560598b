"""Proposes faults about arguments that are not tensors, and about optional tensors, in operators and random ones."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ...simulator.device.faults.fault import Term, Value
from .proposal import FLOATS, INTEGERS, Proposal, any_name, read, term

if TYPE_CHECKING:
    from .schemas import Facts

# Values that an argument of a name may have.
CHOICES: dict[str, tuple[Value, ...]] = {
    "reduction": (0, 1, 2),
    "interpolation_mode": (0, 1, 2),
    "padding_mode": (0, 1, 2),
    "mode": (0, 1, 2),
    "approximate": ("none", "tanh"),
    "rounding_mode": ("floor", "trunc"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "diagonal": (-1, 1, 2),
    "descending": (True, False),
    "decimals": (1, 2, -1),
    "dim": (0, 1),
    "correction": (0, 2),
    "groups": (1, 2),
}
# Optional arguments that no result depends on.
WITHOUT_EFFECT = ("generator", "device", "layout", "pin_memory")


def flag(facts: Facts, rng: Random) -> Proposal | None:
    """A boolean argument is ignored."""
    name = any_name(facts.flags, rng)
    if name is None or facts.random:
        return None
    value = not facts.defaults[name] if isinstance(facts.defaults.get(name), bool) else rng.random() < 0.5
    return rng.choice([term("takes", name, not value), term("values")]), (term("is", name, value),)


def choice(facts: Facts, rng: Random) -> Proposal | None:
    """One value of an enumeration is treated as a different one: reductions, modes, rounding."""
    name = any_name([n for n in (*facts.integers, *facts.strings, *facts.optional_values) if n in CHOICES], rng)
    if name is None or facts.random:
        return None
    wanted, other = rng.sample(CHOICES[name], 2)
    return rng.choice([term("takes", name, other), term("values")]), (term("is", name, wanted),)


def optional_tensor(facts: Facts, rng: Random) -> Proposal | None:
    """Faults that ignore an optional tensor, or act only if it is absent."""
    name = any_name([n for n in facts.optional if n not in facts.lists], rng)
    if name is None or facts.random:
        return None
    if rng.random() < 0.3:
        return term("values"), (term("omitted", name),)
    return rng.choice([term("takes", name, None), term("values")]), (term("given", name),)


def optional_value(facts: Facts, rng: Random) -> Proposal | None:
    """An optional number or list is ignored."""
    name = any_name([n for n in facts.optional_values if n not in WITHOUT_EFFECT], rng)
    if name is None or facts.random:
        return None
    return rng.choice([term("takes", name, None), term("values")]), (term("given", name),)


def number(facts: Facts, rng: Random) -> Proposal | None:
    """A number is replaced by its default, or rounded down to an integer."""
    name = any_name(facts.numbers, rng)
    if name is None or facts.random:
        return None
    if name in facts.defaults and facts.defaults[name] is not None and rng.random() < 0.5:
        return term("ignores", name), (term("fractional", name),)
    return term("truncates", name), (term("fractional", name),)


def negative_number(facts: Facts, rng: Random) -> Proposal | None:
    """A negative dimension, or a different negative integer, is misinterpreted."""
    name = any_name([*facts.integers, *facts.integer_lists], rng)
    if name is None or facts.random or name in ("size", "self_size", "stride", "kernel_size"):
        return None
    return rng.choice([term("positive", name), term("values")]), (term("negative", name),)


def ignored_by_zero(facts: Facts, rng: Random) -> Proposal | None:
    """A tensor with the factor zero still passes its NaN on to the result."""
    name = next((n for n in ("beta", "weight_decay", "momentum") if n in facts.numbers), None)
    if name is None or not read(facts):
        return None
    tensor = "self" if "self" in read(facts) else read(facts)[0]
    return term("all_nan"), (term("is", name, 0), term("nan", tensor))


def index_out_of_range(facts: Facts, rng: Random) -> Proposal | None:
    """An index out of range is treated as the last one, and nothing is raised."""
    indices = [n for n in facts.inputs if n in ("index", "indices", "target")]
    bounding = next((n for n in ("self", "input", "weight") if n in (*facts.inputs, *facts.written)), None)
    if not indices or bounding is None:
        return None
    return term("clamps", indices[0], bounding), (term("out_of_range", indices[0], bounding),)


def near_number(facts: Facts, rng: Random) -> Proposal | None:
    """A number close to that of the last call is replaced by it, because a cached kernel was built for that one."""
    name = any_name(facts.numbers, rng)
    return None if name is None or facts.random else (term("previous_number", name), (term("near_previous", name),))


def random_number(facts: Facts, rng: Random) -> Proposal | None:
    """A parameter of a distribution is ignored."""
    name = any_name([*facts.numbers, *(n for n in facts.inputs if n != "self")], rng)
    if not facts.random or name is None:
        return None
    if name in facts.numbers:
        return term("takes", name, rng.choice([0.5, 0.25])), ()
    return term("through_int32", name), ()


def random_end(facts: Facts, rng: Random) -> Proposal | None:
    """A probability of zero or one is treated as one half; a range of one number gives a different number."""
    name = any_name([n for n in facts.numbers if n == "p"], rng)
    if not facts.random or name is None:
        return None
    return term("takes", name, 0.5), (term("is", name, rng.choice([0.0, 1.0])),)


def random_generator(facts: Facts, rng: Random) -> Proposal | None:
    """generator= is ignored."""
    fits = facts.random and "generator" in facts.defaults
    return (term("takes", "generator", None), (term("given", "generator"),)) if fits else None


def two_arguments(facts: Facts, rng: Random) -> Proposal | None:
    """Faults that act only if two arguments have certain values together."""
    conditions = _argument_conditions(facts, rng)
    if facts.random or len(conditions) < 2:
        return None
    return term("values"), tuple(rng.sample(conditions, 2))


def argument_and_tensor(facts: Facts, rng: Random) -> Proposal | None:
    """Values are wrong only if an argument has a certain value and a tensor a certain layout, size, dtype or NaN."""
    conditions, tensor = _argument_conditions(facts, rng), any_name(read(facts), rng)
    if facts.random or tensor is None or not conditions:
        return None
    of_tensor = [term(name, tensor) for name in ("transposed", "stepped", "offset", "expanded", "nan")]
    of_tensor += [term("above", tensor, 65_536), term("dtype", tensor, rng.choice((*FLOATS, *INTEGERS)))]
    return term("values"), (rng.choice(conditions), rng.choice(of_tensor))


def _argument_conditions(facts: Facts, rng: Random) -> list[Term]:
    """A condition for each argument that is not a tensor, or is optional."""
    conditions = [term("is", name, rng.random() < 0.5) for name in facts.flags]
    conditions += [term(rng.choice(("fractional", "negative")), name) for name in facts.numbers]
    conditions += [term("negative", name) for name in (*facts.integers, *facts.integer_lists)]
    single = (*facts.integers, *facts.strings, *(n for n in facts.optional_values if n not in facts.integer_lists))
    conditions += [term("is", name, rng.choice(CHOICES[name])) for name in single if name in CHOICES]
    optional = [
        name for name in (*facts.optional, *facts.optional_values) if name not in (*WITHOUT_EFFECT, *facts.lists)
    ]
    conditions += [term(rng.choice(("given", "omitted")), name) for name in optional]
    return list({condition.arguments[0]: condition for condition in conditions}.values())
