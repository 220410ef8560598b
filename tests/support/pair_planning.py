"""Plans calls for pairs of levels that no case was at: `PYTHONPATH=tests python -m support.pair_planning STORE`.

Reads from the store which pairs of an argument's level with a level of the tensors are open, and looks for calls of the
same entry that bring the most of them at once. Each is tried on the CPU, in a separate process, because a kernel of the
CPU may die of it. The calls are added to the file that `planned_pairs` reads; an empty file makes a new plan.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice, product
from pathlib import Path

import torch
from torch import Tensor

from mpsmith.audit.cases.calls.cpu_kernels import register
from mpsmith.audit.cases.covering.levels import layout_of, levels_of
from mpsmith.audit.cases.covering.pairs import DTYPE, FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SIZE, VALUES, Level, Pair
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.argument_pairs import UNPAIRED
from mpsmith.audit.cases.sources.arguments import MAIN_DTYPES, divides_by_zero, is_small
from mpsmith.audit.cases.sources.case_tensors import accepts, tensors_in, tensors_of
from mpsmith.audit.cases.sources.planned_pairs import (
    PLAN,
    Planned,
    at_levels,
    calls_of,
    parsed,
    variations_for,
    written,
)
from mpsmith.audit.cases.sources.tensor_layouts import KERNEL_DIES
from mpsmith.audit.cases.sources.unsafe_values import excluded
from mpsmith.audit.cases.sources.write_targets import STRIDES_IGNORED
from mpsmith.audit.findings.pairs_seen import (
    COUNTED,
    FLOATING_VALUES,
    IMPOSSIBLE_PAIRS,
    INTEGERS,
    argument_levels,
    counted,
    entry_name,
    possible_with_arguments,
    tensor_levels,
)
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.nested import leaves
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind, open_device

# Sources whose calls differ in their arguments, in the order in which they are tried.
BASES = (
    *("opinfo", "schema", "modules", "arguments", "mixed dtypes", "argument pairs"),
    *("schema element-wise kernels", "sizes", "schema sizes", "samples without gradients"),
)
FACTORS = (DTYPE, SIZE, LAYOUT, OTHER_LAYOUTS, GRADIENT, FORM, VALUES)
# Beside those whose arguments are not paired: kernels of the CPU that write out of bounds, or give no reference.
UNPLANNED = (*UNPAIRED, *KERNEL_DIES, *STRIDES_IGNORED, "*_aa*", "*grid_sample*", "*lu_unpack*", "*_fused_*", "*lstsq*")
# The gradient of hardswish at NaN is NaN in the vectors of the CPU, and a number in its loop over the rest.
UNPLANNED += ("hardswish_backward*",)
# Those of the optimizers among them are planned in what does not change their layouts.
OPTIMIZERS = ("_fused_ada*", "_fused_sgd*")
# Limits for an entry, so that all together are a few in a hundred cases of an audit; seconds are of the processor.
MOST_TRIED, MOST_PLANNED, FEWEST_NEW, MOST_SECONDS = 150, 30, 1, 5
# Elements of a planned call's largest tensor: more take an audit up to a minute.
LARGEST = 2**20


@dataclass
class CandidateCall:
    """A call that may be varied: where it comes from, its arguments' levels, and those that its tensors can be at."""

    planned: Planned
    case: Case
    arguments: frozenset[Level]
    levels: set[Level]


def open_pairs(store: Store, run: int) -> tuple[dict[str, set[Pair]], dict[str, list[GroupKey]]]:
    """The pairs that are open, and the groups whose calls may be varied, by entry."""
    seen: defaultdict[str, set[Pair]] = defaultdict(set)
    refused: defaultdict[str, set[Pair]] = defaultdict(set)
    tensors: defaultdict[str, set[Level]] = defaultdict(set)
    groups: defaultdict[str, list[GroupKey]] = defaultdict(list)
    for covered in store.covered(run):
        key, name = covered.group, entry_name(covered.group)
        if key.source in BASES:
            groups[name].append(key)
        for levels, pairs in ((covered.levels, seen[name]), (covered.refused, refused[name])):
            for own, arguments in {(counted(key, row), argument_levels(row)) for row in levels}:
                pairs.update(product(arguments, own))
            tensors[name].update(*map(tensor_levels, levels))
    return {
        name: {pair for pair in possible_with_arguments(pairs, tensors[name]) if pair[1][0] in FACTORS}
        - pairs
        - refused[name]
        for name, pairs in seen.items()
    }, groups


def planned_for(sources: dict[str, CaseSource], groups: Iterable[GroupKey], wanted: set[Pair]) -> Iterator[Planned]:
    """The calls of an entry that bring the most pairs, until none brings enough."""
    calls = list(_different_calls(sources, groups, wanted))
    made = tried = 0
    while calls and made < MOST_PLANNED and tried < MOST_TRIED:
        (new, row), call = max(((_best_row(call, wanted), call) for call in calls), key=lambda scored: scored[0][0])
        if new < FEWEST_NEW:
            return
        rows = [row, *(row[:i] + row[i + 1 :] for i in range(len(row)) if len(row) > 1), *([level] for level in row)]
        best: tuple[set[Pair], Planned, list[Level]] = (set(), call.planned, row)
        for levels in rows:
            tried += 1
            candidate = _at(call.planned, levels)
            brought = _brought(sources[candidate.base.source], candidate, call.case) & wanted
            best = max(best, (brought, candidate, levels), key=lambda option: len(option[0]))
            if len(best[0]) >= new - (levels is not row):
                break
        brought, candidate, levels = best
        if len(brought) >= FEWEST_NEW:
            made += 1
            wanted -= brought
            yield candidate
        # What a call does not bring with these levels is not tried again.
        call.levels.difference_update(levels)


def _different_calls(
    sources: dict[str, CaseSource], groups: Iterable[GroupKey], wanted: set[Pair]
) -> Iterator[CandidateCall]:
    """The first call with each combination of arguments, in a dtype of each kind.

    Those at special values follow the plain ones, and those that get another dtype come last.
    """
    by_base: defaultdict[tuple[str, str, str], dict[str, GroupKey]] = defaultdict(dict)
    for key in groups:
        if _factors(key.operator):
            by_base[key.source, key.operator, key.variant][key.dtype] = key
    bases = [
        (sources[base[0]], by_base[base], [dtype for dtype in MAIN_DTYPES if dtype in by_base[base]])
        for base in sorted(by_base, key=lambda base: (BASES.index(base[0]), base))
    ]
    calls = {key: calls_of(source, key) for source, keys, dtypes in bases for key in map(keys.__getitem__, dtypes)}
    taken: set[tuple[str, tuple[Level, ...]]] = set()
    for special, changes in ((False, False), (True, False), (False, True)):
        for source, keys, dtypes in bases:
            for before, dtype in product(dtypes, MAIN_DTYPES):
                if changes == (before != dtype):
                    of_group = calls[keys[before]].items()
                    chosen = {name: case for name, case in of_group if special == (case.values != "plain")}
                    yield from _calls_in(source, keys[before], dtype, chosen, wanted, taken)


def _calls_in(
    source: CaseSource,
    key: GroupKey,
    dtype: str,
    calls: Mapping[str, Case],
    wanted: set[Pair],
    taken: set[tuple[str, tuple[Level, ...]]],
) -> Iterator[CandidateCall]:
    """Of a group's calls in a dtype those whose arguments no other call has in a dtype of its kind."""
    for name, case in calls.items():
        arguments = argument_levels(levels_of(case))
        tried = {own for argument, own in wanted if argument in arguments and own[0] in _factors(key.operator)}
        if not tried or not _can_be_varied(case) or (_kind(dtype), arguments) in taken:
            continue
        planned = Planned(key, name, dtype, ())
        changed = case if key.dtype == dtype else _in_other_dtype(source, planned, case)
        if changed is None or not accepts(changed):
            continue
        taken.add((_kind(dtype), arguments))
        variations = (v for v in variations_for(source, planned, changed) if (v.factor, v.level) in tried)
        levels = {(v.factor, v.level) for v in variations if v.change(changed) is not None}
        if case.values == "plain":
            levels.update((DTYPE, other) for other in COUNTED[DTYPE] if _kind(other) == _kind(dtype))
        else:  # its values are those of its dtype
            levels = {level for level in levels if level[0] != VALUES}
        yield CandidateCall(planned, case, frozenset(arguments), levels)


def _in_other_dtype(source: CaseSource, planned: Planned, call: Case) -> Case | None:
    """The call in the planned dtype; None where another tensor's dtype is not promoted to it.

    Beside a float, an integer is promoted: such a call says nothing about a kernel for integers.
    """
    own = getattr(torch, planned.dtype)
    try:
        changed = at_levels(source, planned, call)
        return changed if all(torch.promote_types(own, t.dtype) == own for t in tensors_of(changed)) else None
    except RuntimeError:  # a sparse tensor, or one of a dtype that nothing is promoted to
        return None


def _factors(operator: str) -> tuple[str, ...]:
    """What is varied in the calls of an operator."""
    if any(fnmatchcase(operator, pattern) for pattern in OPTIMIZERS):
        return DTYPE, VALUES
    return () if any(fnmatchcase(operator, pattern) for pattern in UNPLANNED) else FACTORS


def _kind(dtype: str) -> str:
    """Dtypes of one kind are at the same special values."""
    return dtype if dtype in ("complex64", "bool") else "integer" if dtype in INTEGERS else "floating"


def _can_be_varied(call: Case) -> bool:
    plain = call.form == "plain" and not (call.skipped or call.distribution)
    return plain and bool(tensors_of(call)) and is_small(call)


def _best_row(call: CandidateCall, wanted: set[Pair]) -> tuple[int, list[Level]]:
    """How many open pairs a call brings at best, and the level of each factor at which it does."""
    counts = Counter(own for argument, own in wanted if argument in call.arguments and own in call.levels)
    row: list[Level] = []
    for factor in FACTORS:
        of_factor = [
            (count, level)
            for level, count in sorted(counts.items())
            if level[0] == factor and not any(frozenset((level, other)) in IMPOSSIBLE_PAIRS for other in row)
        ]
        if of_factor:
            row.append(max(of_factor, key=lambda option: option[0])[1])
    return sum(counts[level] for level in row), row


def _at(planned: Planned, levels: Iterable[Level]) -> Planned:
    dtype = dict(levels).get(DTYPE, planned.dtype)
    return replace(planned, dtype=dtype, levels=tuple(level for level in levels if level[0] != DTYPE))


def _brought(source: CaseSource, planned: Planned, call: Case) -> set[Pair]:
    """The pairs that the planned call is at; none where the CPU refuses it."""
    try:
        case = at_levels(source, planned, call)
    except Exception:  # whatever a layout or a dtype makes of the call
        return set()
    operator, dtype = planned.base.operator, planned.dtype
    special = case.values != "plain"
    is_large = max(tensor.numel() for tensor in tensors_of(case)) > LARGEST
    is_tried = not (is_large or divides_by_zero(operator, dtype)) and not (
        special and (excluded(operator, dtype, case.values) or _converts_to_integers(case))
    )
    levels = levels_of(case) if is_tried and _is_defined(case) else ()
    return set(product(argument_levels(levels), counted(replace(planned.base, dtype=planned.dtype), levels)))


def _is_defined(case: Case) -> bool:
    """Whether the CPU accepts the call, and nothing is written into a tensor that has one element in several places."""
    args, kwargs = move(case.args, case.kwargs, "cpu")
    tensors = tensors_in((args, kwargs))
    versions = [tensor._version for tensor in tensors]
    try:
        case.call(*args, **kwargs)
    except Exception:  # whatever the CPU raises
        return False
    return all(t._version == before or layout_of(t) != "expanded" for t, before in zip(tensors, versions, strict=True))


def _converts_to_integers(case: Case) -> bool:
    """Whether results go to a tensor of integers: C++ leaves undefined what they make of special values."""
    outs = [t for t in leaves(case.kwargs.get("out")) if isinstance(t, Tensor)]
    return case.values in FLOATING_VALUES and not all(t.is_floating_point() or t.is_complex() for t in outs)


def in_separate_process(*arguments: object) -> tuple[Planned, ...]:
    """The plan of an entry; what was found before the process died or took too long."""
    with tempfile.NamedTemporaryFile("w+") as plan:
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            try:
                for planned in planned_for(*arguments):
                    plan.write(f"{written([planned])}\n")
                    plan.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return parsed(Path(plan.name).read_text())


def main(store: Path, names: Collection[str] = ()) -> None:
    """Plan for the latest audit of a store: for some entries, or for all, those first that lack the most pairs."""
    torch.set_num_threads(1)
    register()
    open_device(DeviceKind.SIMULATED, coverage_profile, None)  # which overloads have a kernel
    sources = {name: source for name, source in case_sources(()).items() if name in BASES}
    with Store.open(store) as opened:
        wanted, groups = open_pairs(opened, opened.latest_run().id)
    for source in sources.values():
        for key in islice(source.groups(), 1):
            next(iter(source.cases(key, Samples.DEFAULT)), None)  # loads what each process would load again
    planned = set(parsed(PLAN.read_text()))
    lacking = (name for name in groups if wanted.get(name) and (not names or name in names))
    for number, name in enumerate(sorted(lacking, key=lambda entry: (-len(wanted[entry]), entry))):
        planned.update(added := in_separate_process(sources, groups[name], wanted[name]))
        print(name, len(wanted[name]), len(added), len(planned), flush=True)
        if number % 50 == 0:
            PLAN.write_text(written(planned))  # what was found stays where this is stopped
    PLAN.write_text(written(planned))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
