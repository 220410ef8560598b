"""Plans calls for pairs of levels that no case was at: `PYTHONPATH=tests python -m support.pair_planning STORE`.

Reads from the store which pairs of an argument's level with a level of the tensors are open, and looks for calls of the
same entry that bring several of them at once. Each is tried on the CPU, in a separate process, because a kernel of the
CPU may die of it. The calls are added to the file that `planned_pairs` reads; an empty file makes a new plan.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import torch

from mpsmith.audit.cases.calls.cpu_kernels import register
from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.covering.pairs import DTYPE, FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SIZE, VALUES, Level, Pair
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.argument_pairs import UNPAIRED
from mpsmith.audit.cases.sources.arguments import MAIN_DTYPES, divides_by_zero, is_small
from mpsmith.audit.cases.sources.case_tensors import accepts, tensors_of
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
from mpsmith.audit.findings.pairs_seen import IMPOSSIBLE_PAIRS, argument_levels, counted, entry_name
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind, open_device

# Sources whose calls differ in their arguments, in the order in which they are tried.
BASES = ("opinfo", "schema", "arguments")
FACTORS = (DTYPE, SIZE, LAYOUT, OTHER_LAYOUTS, GRADIENT, FORM, VALUES)
# Beside those whose arguments are not paired: kernels of the CPU that write out of bounds, or are no reference there.
UNPLANNED = (*UNPAIRED, *KERNEL_DIES, *STRIDES_IGNORED, "*_aa*", "*grid_sample*", "*lu_unpack*", "*_fused_*", "*lstsq*")
# Limits for an entry, so that all together are a few in a hundred cases of an audit; seconds are of the processor.
MOST_TRIED, MOST_PLANNED, FEWEST_NEW, MOST_SECONDS = 200, 40, 2, 30
# Entries that lack fewer pairs than the first ones are left as they are.
MOST_ENTRIES = 3_000


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
    groups: defaultdict[str, list[GroupKey]] = defaultdict(list)
    for covered in store.covered(run):
        key, name = covered.group, entry_name(covered.group)
        if key.source in BASES:
            groups[name].append(key)
        for levels, pairs in ((covered.levels, seen[name]), (covered.refused, refused[name])):
            for own, arguments in {(counted(key, each), argument_levels(each)) for each in levels}:
                pairs.update(product(arguments, own))
    wanted = {}
    for name, pairs in seen.items():
        arguments, own = ({pair[side] for pair in pairs} for side in (0, 1))
        possible = product(arguments, (level for level in own if level[0] in FACTORS))
        wanted[name] = {pair for pair in possible if frozenset(pair) not in IMPOSSIBLE_PAIRS} - pairs - refused[name]
    return wanted, groups


def planned_for(sources: dict[str, CaseSource], groups: Iterable[GroupKey], wanted: set[Pair]) -> Iterator[Planned]:
    """The calls of an entry that bring the most pairs, until none brings several."""
    calls = list(_different_calls(sources, groups))
    made = tried = 0
    while calls and made < MOST_PLANNED and tried < MOST_TRIED:
        (new, row), call = max(((_best_row(call, wanted), call) for call in calls), key=lambda each: each[0][0])
        if new < FEWEST_NEW:
            return
        for levels in (row, *([[level] for level in row] if len(row) > 1 else [])):
            tried += 1
            candidate = _at(call.planned, levels)
            brought = _brought(sources[candidate.base.source], candidate, call.case) & wanted
            if len(brought) >= FEWEST_NEW:
                made += 1
                wanted -= brought
                yield candidate
            if levels is row and brought:
                break
        # What a call does not bring with these levels is not tried again.
        call.levels.difference_update(row)


def _different_calls(sources: dict[str, CaseSource], groups: Iterable[GroupKey]) -> Iterator[CandidateCall]:
    """The first call with each combination of arguments, in the main dtype of each source."""
    by_base: defaultdict[tuple[str, str, str], dict[str, GroupKey]] = defaultdict(dict)
    for key in groups:
        if not any(fnmatchcase(key.operator, each) for each in UNPLANNED):
            by_base[key.source, key.operator, key.variant][key.dtype] = key
    known: set[tuple[bool, tuple[Level, ...]]] = set()
    for base in sorted(by_base, key=lambda each: (BASES.index(each[0]), each)):
        for dtype in (each for each in MAIN_DTYPES if each in by_base[base]):
            # Real and imaginary parts of what was real say little of complex arithmetic.
            dtypes = [other for other in by_base[base] if (other == "complex64") == (dtype == "complex64")]
            source, key = sources[base[0]], by_base[base][dtype]
            for name, case in calls_of(source, key).items():
                arguments = argument_levels(levels_of(case))
                kind = (dtype == "complex64", arguments)
                if _can_be_varied(case) and kind not in known:
                    known.add(kind)
                    planned = Planned(key, name, dtype, ())
                    variations = (v for v in variations_for(source, planned, case) if v.factor in FACTORS)
                    levels = {(v.factor, v.level) for v in variations if v.change(case) is not None}
                    levels.update((DTYPE, other) for other in dtypes)
                    yield CandidateCall(planned, case, frozenset(arguments), levels)


def _can_be_varied(call: Case) -> bool:
    plain = call.form == "plain" and call.values == "plain" and not (call.skipped or call.distribution)
    return plain and not call.errors_count and bool(tensors_of(call)) and is_small(call)


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
            row.append(max(of_factor, key=lambda each: each[0])[1])
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
    is_tried = not divides_by_zero(operator, dtype) and not (
        case.values != "plain" and excluded(operator, dtype, case.values)
    )
    levels = levels_of(case) if is_tried and accepts(case) else ()
    return set(product(argument_levels(levels), counted(replace(planned.base, dtype=planned.dtype), levels)))


def in_separate_process(*arguments: object) -> tuple[Planned, ...]:
    """The plan of an entry; what was found before the process died or took too long."""
    with tempfile.NamedTemporaryFile("w+") as found:
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            try:
                for planned in planned_for(*arguments):
                    found.write(f"{written([planned])}\n")
                    found.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return parsed(Path(found.name).read_text())


def main(store: Path) -> None:
    """Plan for the latest audit of a store."""
    torch.set_num_threads(1)
    register()
    open_device(DeviceKind.SIMULATED, coverage_profile, None)  # which overloads have a kernel
    sources = {name: source for name, source in case_sources(()).items() if name in BASES}
    with Store.open(store) as opened:
        wanted, groups = open_pairs(opened, opened.latest_run().id)
    for source in sources.values():
        list(source.groups())  # loads what each process would load again
    planned = set(parsed(PLAN.read_text()))
    lacking = (name for name in groups if wanted.get(name))
    for name in sorted(lacking, key=lambda each: (-len(wanted[each]), each))[:MOST_ENTRIES]:
        print(name, len(planned), len(wanted[name]), flush=True)
        planned.update(in_separate_process(sources, groups[name], wanted[name]))
    PLAN.write_text(written(planned))
    print(f"{len(planned):,} calls of {len(wanted):,} entries")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
