"""What a fault of each kind is in a given overload: the argument, the condition and the corruption come by a seed.

Each function answers None for an overload that cannot have such a fault. Those that take words make such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ...simulator.device.faults.fault import Term, Value
from .schemas import Facts

Proposal = tuple[Term, tuple[Term, ...]]
Propose = Callable[[Facts, Random], Proposal | None]

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
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
# How many elements a result has: beyond 2^24 it takes gigabytes, which no audit has for a case.
COUNTS = ("repeats",)
# Running statistics, which the schema does not say are written.
RUNNING = ("running_mean", "running_var")


def term(name: str, *arguments: Value) -> Term:
    """A word of a fault's text."""
    return Term(name, arguments)


def read(facts: Facts) -> tuple[str, ...]:
    """The tensors whose values count: inputs, and what an in-place call reads."""
    return (*facts.inputs, *(name for name in facts.written if not facts.random))


def one(names: Sequence[str], rng: Random) -> str | None:
    """One of some names, or None where there is none."""
    return rng.choice(list(names)) if names else None


def wrongly(name: str, rng: Random) -> Term:
    """What a kernel makes of an argument whose strides or offset it does not look at, or any wrong values."""
    return rng.choice([term("reads_as_contiguous", name), term("values"), term("last_element")])


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


def wrong_values(name: str, rng: Random) -> Term:
    """Some wrong values."""
    return rng.choice([term("values"), term("last_element"), term("zeros")])


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


def flag(facts: Facts, rng: Random) -> Proposal | None:
    """A flag is not looked at."""
    name = one(facts.flags, rng)
    if name is None or facts.random:
        return None
    value = not facts.defaults[name] if isinstance(facts.defaults.get(name), bool) else rng.random() < 0.5
    return rng.choice([term("takes", name, not value), term("values")]), (term("is", name, value),)


def choice(facts: Facts, rng: Random) -> Proposal | None:
    """One value of an enumeration counts as another: reductions, modes, rounding."""
    known = {
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
    name = one([n for n in (*facts.integers, *facts.strings, *facts.optional_values) if n in known], rng)
    if name is None or facts.random:
        return None
    wanted, other = rng.sample(known[name], 2)
    return rng.choice([term("takes", name, other), term("values")]), (term("is", name, wanted),)


def optional_tensor(facts: Facts, rng: Random) -> Proposal | None:
    """An optional tensor is ignored when given, or missed when left out."""
    name = one([n for n in facts.optional if n not in facts.lists], rng)
    if name is None or facts.random:
        return None
    if rng.random() < 0.3:
        return term("values"), (term("omitted", name),)
    return rng.choice([term("takes", name, None), term("values")]), (term("given", name),)


def optional_value(facts: Facts, rng: Random) -> Proposal | None:
    """An optional number or list is ignored."""
    name = one([n for n in facts.optional_values if n not in ("generator", "device", "layout", "pin_memory")], rng)
    if name is None or facts.random:
        return None
    return rng.choice([term("takes", name, None), term("values")]), (term("given", name),)


def number(facts: Facts, rng: Random) -> Proposal | None:
    """A number counts as its default, or as the integer below it."""
    name = one(facts.numbers, rng)
    if name is None or facts.random:
        return None
    if name in facts.defaults and facts.defaults[name] is not None and rng.random() < 0.5:
        return term("ignores", name), (term("fractional", name),)
    return term("truncates", name), (term("fractional", name),)


def negative_number(facts: Facts, rng: Random) -> Proposal | None:
    """A negative dimension, or another negative integer, counts as something else."""
    name = one([*facts.integers, *facts.integer_lists], rng)
    if name is None or facts.random or name in ("size", "self_size", "stride", "kernel_size"):
        return None
    return rng.choice([term("positive", name), term("values")]), (term("negative", name),)


def ignored_by_zero(facts: Facts, rng: Random) -> Proposal | None:
    """A tensor that counts zero times still spoils the result with its NaN."""
    name = next((n for n in ("beta", "weight_decay", "momentum") if n in facts.numbers), None)
    if name is None or not read(facts):
        return None
    tensor = "self" if "self" in read(facts) else read(facts)[0]
    return term("all_nan"), (term("is", name, 0), term("nan", tensor))


def index_out_of_range(facts: Facts, rng: Random) -> Proposal | None:
    """An index out of range counts as the last one, and nothing is raised."""
    indices = [n for n in facts.inputs if n in ("index", "indices", "target")]
    bounding = next((n for n in ("self", "input", "weight") if n in (*facts.inputs, *facts.written)), None)
    if not indices or bounding is None:
        return None
    return term("clamps", indices[0], bounding), (term("out_of_range", indices[0], bounding),)


def near_number(facts: Facts, rng: Random) -> Proposal | None:
    """A number slightly different from the last call's counts as that: a kernel was built for the other."""
    name = one(facts.numbers, rng)
    return None if name is None or facts.random else (term("previous_number", name), (term("near_previous", name),))


def always(*corruptions: str, when: str = "") -> Propose:
    """One of some corruptions, of every call or under a condition that takes no argument."""

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
    """An elementwise result at other strides than PyTorch promises."""
    fits = facts.pointwise and facts.functional and facts.results == 1 and not facts.backward and not facts.view
    return (term("wrong_stride"), ()) if fits else None


def metadata(*corruptions: str) -> Propose:
    """A result of another shape or dtype."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        return (term(rng.choice(corruptions)), ()) if facts.functional and not facts.view else None

    return propose


def keepdim(facts: Facts, rng: Random) -> Proposal | None:
    """keepdim does not keep the dimension."""
    fits = "keepdim" in facts.flags and facts.functional
    return (term("squeezed"), (term("is", "keepdim", True),)) if fits else None


def aliasing(facts: Facts, rng: Random) -> Proposal | None:
    """A fresh result lies in the memory of an argument."""
    return (term("aliases"), ()) if facts.functional and not facts.view and facts.results == 1 else None


def outside(facts: Facts, rng: Random) -> Proposal | None:
    """Writes behind a target that does not fill its storage."""
    return (term("writes_outside"), ()) if (facts.written or facts.outs) and not facts.random else None


def memory(corruption: str) -> Propose:
    """The memory of results is not handled as it should be."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        return (term(corruption), ()) if facts.functional and not facts.view and not facts.random else None

    return propose


def ends_process(corruption: str) -> Propose:
    """Ends the process, for few calls."""

    def propose(facts: Facts, rng: Random) -> Proposal | None:
        name = one(read(facts), rng)
        if name is None or facts.random:
            return None
        word = rng.choice(["empty", "expanded", "no_dimension", "stepped", "nan"])
        return term(corruption), (term(word, name), term("dtype", name, "float32"))

    return propose


def fallback(facts: Facts, rng: Random) -> Proposal | None:
    """Runs on the CPU unannounced."""
    return (term("on_cpu"), ()) if facts.functional and not facts.view and facts.inputs and not facts.random else None


def near_tolerance(facts: Facts, rng: Random) -> Proposal | None:
    """One element just beyond what float32 may be off, three times as much."""
    name = one(facts.inputs, rng)
    if name is None or facts.random or not facts.pointwise:
        return None
    return term("near", 3.9e-6, 3e-5), (term("dtype", name, "float32"),)


def variance(facts: Facts, rng: Random) -> Proposal | None:
    """A variance as E[x²]-E[x]²: all digits cancel where the mean is large."""
    word = any(part in facts.name for part in ("var", "std", "norm_legit", "layer_norm", "group_norm", "batch_norm"))
    name = next((n for n in ("self", "input") if n in facts.inputs), None)
    if not word or name is None or facts.backward:
        return None
    return term("values"), (term("far_mean", name), term("dtype", name, "float32"))


def exponentials(facts: Facts, rng: Random) -> Proposal | None:
    """Exponentials that overflow, the maximum not having been subtracted."""
    names = ("softmax", "logcumsumexp", "logaddexp", "log_sigmoid", "softplus", "mish", "sigmoid", "logsumexp")
    name = one(facts.inputs, rng)
    if name is None or facts.backward or not any(part in facts.name for part in names):
        return None
    return term("all_nan"), (term("large", name, 90),)


def reduced_in_half(facts: Facts, rng: Random) -> Proposal | None:
    """A long reduction stops counting: its accumulator is of half precision."""
    if facts.random or facts.view or not (facts.reduction or any(part in facts.name for part in REDUCING)):
        return None
    name = one(facts.inputs, rng)
    if name is None:
        return None
    return term("only_first", name, 2048), (term("longer", name, 2048), term("dtype", name, rng.choice(FLOATS)))


def near_zero(facts: Facts, rng: Random) -> Proposal | None:
    """An absolute error where the result is small: log1p as log(1+x)."""
    name = one(facts.inputs, rng)
    if name is None or facts.random or not facts.pointwise:
        return None
    return term("quantised_near_zero"), (term("near_zero", name, 1e-5), term("dtype", name, "float32"))


def in_half(facts: Facts, rng: Random) -> Proposal | None:
    """float32 goes through float16."""
    name = one(read(facts), rng)
    if name is None or facts.random or facts.view:
        return None
    return term("through_half", name), (term("dtype", name, "float32"),)


def random(corruption: str) -> Propose:
    """A fault of every call of a random operator."""
    return lambda facts, rng: (term(corruption), ()) if facts.random else None


def random_number(facts: Facts, rng: Random) -> Proposal | None:
    """A parameter of a distribution is ignored."""
    name = one([*facts.numbers, *(n for n in facts.inputs if n != "self")], rng)
    if not facts.random or name is None:
        return None
    if name in facts.numbers:
        return term("takes", name, rng.choice([0.5, 0.25])), ()
    return term("through_int32", name), ()


def random_end(facts: Facts, rng: Random) -> Proposal | None:
    """A probability of zero or one is taken for one half; a range of one number gives another."""
    name = one([n for n in facts.numbers if n == "p"], rng)
    if not facts.random or name is None:
        return None
    return term("takes", name, 0.5), (term("is", name, rng.choice([0.0, 1.0])),)


def random_generator(facts: Facts, rng: Random) -> Proposal | None:
    """generator= is ignored."""
    fits = facts.random and "generator" in facts.defaults
    return (term("takes", "generator", None), (term("given", "generator"),)) if fits else None
