"""What runs inside a worker process: it makes the cases of a group, judges them and stores each result at once.

A case may abort, hang or eat all memory; then this process dies and the parent learns from the marker file which
case it was. Nothing here may be imported before `start` has set the fallback variable: libtorch reads it once, when it
loads.
"""

from __future__ import annotations

import gc
import os
import signal
import struct
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from ...errors import MpsmithError
from ..model import time_limit
from ..model.group import COMPILED_MODES, GroupKey
from ..model.launches import count_case, grade_of_case, kernels_in
from ..model.selection import Samples, Settings
from ..model.verdicts import CaseVerdict, Grade, Outcome
from ..shipped.kernels import slow_positions
from ..store.records import STRICT
from ..store.store import Store
from . import last_call
from .compiled import (
    SameVerdict,
    compiled_groups,
    compiled_sources,
    judged_compiled,
    lay_over_codegen,
    name_of_codegen,
    require_compiler,
    with_own_sources,
)
from .outcome_cache import OutcomeCache, outcome_cache
from .pending_rows import PendingRows
from .rerun_budget import AttributionBudget
from .upstream_source import UpstreamKernels, put_upstream
from .worker_exit import at_risk, begin, capture_output
from .worker_limits import end_with_parent, limit_memory

if TYPE_CHECKING:
    from ...simulator.opening import MpsDevice
    from ..cases.covering.pruning import Chosen
    from ..compiled.verdicts import CompiledOutcome
    from ..judging.execution import Execution
    from ..judging.judge import Trial
    from ..model.case import Case, CaseSource
    from ..model.launches import LaunchesByOverload
    from ..shipped.case_launches import Drained, GroupComputing
    from ..shipped.finding_result import FindingResult
    from ..shipped.kernels import AuditedKernels

# Making all samples of a group may take longer than running one of them.
GENERATION_TIMEOUT_FACTOR = 5.0
MAKING_SAMPLES = -1

# What a worker announces: the group and the position of the case it is at, and who has it: the CPU, the device, or a
# look inside.
MARK = struct.Struct("<qqq")
ON_CPU, ON_DEVICE, INSIDE = 0, 1, 2


@dataclass(frozen=True)
class WorkerOptions:
    """What a worker process is started with."""

    settings: Settings
    mode: str
    store: Path
    scratch: Path
    parent: int


@dataclass(frozen=True)
class Task:
    """One group to execute: all its cases, or only some positions.

    `marker`: the file in which the worker announces the case that it is at; tasks that go to one worker share it.
    """

    group: int
    key: GroupKey
    marker: Path
    positions: frozenset[int] | None = None


@dataclass(frozen=True)
class Marker:
    """The open file in which a worker announces the case of a group that it is at."""

    descriptor: int
    group: int


@dataclass(frozen=True)
class AuditPlan:
    """What there is to execute, as a worker found it: the parent itself never loads torch.

    `kernels`: the names of the shipped kernels that can be launched.
    """

    groups: list[GroupKey]
    environment: dict[str, Any]
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """One case executed again: its outcome, both results as text, and what became of calls where kernels shipped.

    `compiled`: what became of it under torch.compile, where that is how it ran; the results are not kept then.
    """

    outcome: Outcome
    inputs: str
    cpu: str
    mps: str
    simulated: bool
    launches: LaunchesByOverload
    compiled: CompiledOutcome | None = None


@dataclass
class _Worker:
    options: WorkerOptions
    sources: dict[str, CaseSource]
    device: MpsDevice
    store: Store
    shipped: AuditedKernels | None
    upstream: UpstreamKernels | None
    pending: PendingRows
    known: OutcomeCache | None = None
    frozen: set[str] = field(default_factory=set)
    looking: AttributionBudget = field(default_factory=AttributionBudget)
    moving: AttributionBudget = field(default_factory=AttributionBudget)


_worker: _Worker | None = None
_failure: MpsmithError | None = None


def start(options: WorkerOptions) -> None:
    """Prepare this process: called once by the pool before any task.

    A pool starts a worker whose initializer fails again and again, so a failure is kept for the first task to raise.
    """
    global _worker, _failure
    try:
        _worker = _prepare(options)
    except MpsmithError as error:
        _failure = error
    except Exception as error:
        _failure = MpsmithError(f"a worker cannot start: {type(error).__name__}: {error}")


def _prepare(options: WorkerOptions) -> _Worker:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    time_limit.prepare()
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "0" if options.mode == STRICT else "1"
    warnings.simplefilter("ignore")
    threading.Thread(target=end_with_parent, args=(options.parent,), daemon=True).start()

    import torch

    from ...simulator.opening import open_device
    from ..cases.calls.references import register as register_references
    from ..cases.sources import case_sources
    from ..releases.surface.profiles import coverage_profile
    from .environment import environment

    torch.set_num_threads(1)
    device = open_device(options.settings.device, coverage_profile, options.settings.profile)
    shipped = _put_shipped(options, device)
    folder = options.settings.upstream
    upstream = put_upstream(folder, device) if folder else None
    _inject_faults(options.settings.faults, device)
    _refuse(options.settings.refuse_dtypes_of, device)
    sources = case_sources(options.settings.imports)
    if options.settings.compiled is not None:
        require_compiler(device)
        sources |= compiled_sources()
    if options.settings.codegen is not None:
        lay_over_codegen(options.settings.codegen)
    register_references()
    store = Store.open_to_add(options.store)
    capture_output(options.scratch)
    limit_memory(options.settings.memory_limit)
    known = outcome_cache(options.settings, environment(device)) if options.settings.compiled is not None else None
    return _Worker(options, sources, device, store, shipped, upstream, PendingRows(store), known)


def _put_shipped(options: WorkerOptions, device: MpsDevice) -> AuditedKernels | None:
    """Let the simulated device compute with the kernels that a release ships, where the user asks for one."""
    release = options.settings.shipped
    if release is None:
        return None
    if not device.simulated:
        raise MpsmithError("--shipped is for the simulated device; a real one launches its own kernels")
    from ..releases.wheel.shipped import shipped_library
    from ..shipped.case_launches import put_under_device

    return put_under_device(shipped_library(release), release, options.scratch)


def _refuse(release: str | None, device: MpsDevice) -> None:
    """Let the simulated device refuse what a release refuses on a Mac, that of its own coverage for None."""
    from ..releases.coverage.refusals import refuse_as, refuse_as_profile

    if release is not None and not device.simulated:
        raise MpsmithError("--refuse-dtypes-of is for the simulated device; a real one refuses what it refuses")
    if release is not None:
        refuse_as(release)
    elif device.profile is not None:
        refuse_as_profile(device.profile)


def _inject_faults(faults: tuple[str, ...], device: MpsDevice) -> None:
    """Put the faults that a self-test asks for into the simulated device."""
    if not faults:
        return
    if not device.simulated:
        raise MpsmithError("faults can be put into the simulated device only (use --device simulated)")
    from ...simulator.device.faults import Fault, inject

    for text in faults:
        inject(Fault.parse(text))


def plan() -> AuditPlan:
    """All groups that the settings select, from every source."""
    from ..cases.covering.quick_level import of_quick_level
    from ..model.case import in_order_of_execution, is_wanted, select

    worker = _started()
    settings = worker.options.settings
    unknown = sorted(set(settings.sources) - set(worker.sources))
    if unknown:
        raise MpsmithError(f"unknown case source {unknown[0]!r} (there are {', '.join(worker.sources)})")
    of_lane = with_own_sources(settings) if settings.compiled else settings
    wanted = [source for source in worker.sources.values() if is_wanted(source, of_lane)]
    kernels = tuple(worker.shipped.names) if worker.shipped else ()
    by_source: dict[str, list[GroupKey]] = {source.name: [] for source in wanted}
    for key in select(wanted, settings.ops, settings.dtypes, settings.samples):
        by_source[key.source].append(key)
    selected = [key for source in wanted for key in in_order_of_execution(source, by_source[source.name])]
    if settings.compiled is not None:
        selected = compiled_groups(selected, settings.compiled)
    elif settings.samples is Samples.QUICK and not settings.sources:
        selected = of_quick_level(selected, worker.sources)
    return AuditPlan(selected, audited_environment(), kernels)


def audited_environment() -> dict[str, Any]:
    """What the results of this audit depend on, on this machine."""
    from .environment import environment

    worker = _started()
    settings = worker.options.settings
    found = environment(worker.device) | ({"shipped": settings.shipped} if worker.shipped else {})
    if settings.codegen is not None:
        found["codegen"] = name_of_codegen(settings.codegen)
    if worker.upstream:
        found["upstream"] = sorted(worker.upstream.overloads)
    return found


def run_groups(tasks: Sequence[Task]) -> list[int]:
    """Execute groups one after the other; returns how many cases of each were executed.

    They come several at a time because handing one over costs as much as executing a case.
    """
    return [run_group(task) for task in tasks]


def run_group(task: Task) -> int:
    """Execute the cases of one group that the store does not hold yet; returns how many were executed."""
    from ...errors import one_line

    worker = _started()
    if worker.shipped is not None:
        worker.shipped.leave_out_deadly()
    marker = Marker(os.open(task.marker, os.O_WRONLY | os.O_CREAT, 0o600), task.group)
    try:
        _announce(marker, MAKING_SAMPLES, worker.options.settings.timeout * GENERATION_TIMEOUT_FACTOR)
        try:
            chosen = _choose_cases(worker, task.key)
        except Exception as error:
            time_limit.stop()
            # PyTorch's own samplers raise SkipTest where an operator has none for a dtype.
            verdict = CaseVerdict.SKIPPED if isinstance(error, SkipTest) else CaseVerdict.REFERENCE_FAILED
            outcome = Outcome(verdict, "samples", f"no samples: {type(error).__name__}: {one_line(error)}")
            with worker.store.transaction():
                worker.store.add_case(task.group, MAKING_SAMPLES, outcome, "")
                worker.store.mark_done(task.group)
            return 0
        open_cases = _open_cases(worker, task, chosen.cases)
        if task.key.mode in COMPILED_MODES:
            executed = _run_compiled(worker, task, open_cases, marker)
        else:
            executed = _run_cases(worker, task, open_cases, marker, _computing(worker, task, chosen))
        if task.key.mode == "fallback":  # the strict mode repeats some of the same cases
            worker.pending.add(partial(worker.store.add_covered, task.group, chosen.repeating, chosen.levels))
        worker.pending.add(partial(worker.store.mark_done, task.group))
        worker.pending.write()
        return executed
    finally:
        time_limit.stop()
        os.close(marker.descriptor)


def rerun_crashed_case(task: Task) -> None:
    """Run the task's only case again, which killed a worker, and write down each call inside before it is made."""
    from ..judging.inner_calls import fault_inside

    worker, case, label, computing = _only_case(task)
    if worker.shipped is not None:
        worker.shipped.leave_out_none()
    descriptor = os.open(last_call.path_of(task.marker), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)):
        at_fault = fault_inside(
            case, worker.device.recorder, worker.options.settings.seed, label, partial(last_call.note, descriptor)
        )
    os.close(descriptor)
    worker.store.add_look_inside(task.group, _position(task), at_fault)


def replay(task: Task) -> Replay:
    """Execute one case and describe what both devices gave; the case is the only position of the task."""
    from ...simulator.shipped.interposition import paused
    from ..model.case import described

    worker, case, label, computing = _only_case(task)
    if task.key.mode in COMPILED_MODES:
        found = _judged_compiled(worker, task, case)
        return Replay(found.outcome, described(case), "", "", worker.device.simulated, {}, found)
    shown: list[str] = []
    launches: LaunchesByOverload = {}

    def show(trial: Trial) -> None:
        launches.update(drained())  # printing a tensor of the device makes calls, too
        with paused():
            shown.extend((_shown(trial.cpu), _shown(trial.mps)))

    with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)) as drained:
        outcome = _judged(worker, case, label, on_executed=show)
        if not shown:
            launches.update(drained())
    cpu, mps = shown or (_shown(None), _shown(None))
    return Replay(outcome, described(case), cpu, mps, worker.device.simulated, launches)


def script(task: Task) -> str:
    """Shrink one case while it fails alike, and write it as a program that needs torch alone."""
    from .reproduction.script import script_of
    from .reproduction.shrinking import shrink

    worker, case, label, computing = _only_case(task)
    if task.key.mode in COMPILED_MODES:
        alike = SameVerdict(lambda simpler: _judged_compiled(worker, task, simpler))
        smallest, outcome = shrink(case, alike)
        return script_of(smallest, task.key, outcome, simulated=worker.device.simulated, metal=alike.source)

    def judge_again(simpler: Case) -> Outcome:
        with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)):
            return _judged(worker, simpler, label)

    smallest, outcome = shrink(case, judge_again)
    return script_of(smallest, task.key, outcome, simulated=worker.device.simulated)


def launch_findings(name: str) -> FindingResult:
    """Make the call of a finding with the shipped kernels of this worker."""
    from ...registry.found_wrong import load
    from ..shipped.finding_run import result_of

    worker = _started()
    assert worker.shipped is not None
    with at_risk(worker.options.settings.timeout):
        return result_of(load()[name], worker.shipped, worker.device.recorder)


def _judged_compiled(worker: _Worker, task: Task, case: Case) -> CompiledOutcome:
    settings = worker.options.settings
    with at_risk(settings.timeout):
        return judged_compiled(worker.device, task.key, _position(task), case, settings.seed, lambda: None)


def _only_case(task: Task) -> tuple[_Worker, Case, str, GroupComputing]:
    worker = _started()
    position = _position(task)
    chosen = _choose_cases(worker, task.key)
    cases = chosen.cases
    if position not in cases:
        raise MpsmithError(f"{task.key.label} has {len(cases)} cases here, not a case {position}: is torch the same?")
    return worker, cases[position], f"{task.key.label}:{position}", _computing(worker, task, chosen)


def _position(task: Task) -> int:
    """The position of the task's only case."""
    assert task.positions is not None
    (position,) = task.positions
    return position


def _computing(worker: _Worker, task: Task, chosen: Chosen) -> GroupComputing:
    """What computes the cases of a group: some of them go through shipped kernels, where there are any."""
    from ..cases.covering.pruning import elements
    from ..shipped.case_choice import positions_through_shipped
    from ..shipped.case_launches import GroupComputing

    if worker.shipped is None:
        return GroupComputing(None)
    sizes = {position: elements(case) for position, case in chosen.cases.items()}
    samples = worker.options.settings.shipped_samples
    through = positions_through_shipped(task.key.source, chosen.levels, sizes, samples)
    return GroupComputing(through - slow_positions(worker.options.scratch, task.group))


def _shown(execution: Execution | None) -> str:
    if execution is None:
        return "(nothing)"
    lines = [f"output {i}: {output!r}" for i, output in enumerate(execution.outputs)]
    return "\n".join(lines + [f"gradient {i}: {gradient!r}" for i, gradient in enumerate(execution.gradients)])


def _choose_cases(worker: _Worker, key: GroupKey) -> Chosen:
    from ..cases.covering.pruning import choose_cases

    settings = worker.options.settings
    chosen = choose_cases(worker.sources[key.source], key, settings.samples, settings.seed)
    freeze_once(worker.frozen, key.source)
    return chosen


def _note_launches(into: LaunchesByOverload, drained: Drained, _trial: object) -> None:
    """Keep what a case launched until now: how often a call is repeated to see a leak depends on the time it takes."""
    into.update(drained())


def _open_cases(worker: _Worker, task: Task, cases: dict[int, Case]) -> list[tuple[int, Case]]:
    """The cases of the task that the store does not hold yet."""
    recorded = worker.store.positions(task.group)
    return [
        (position, case)
        for position, case in cases.items()
        if position not in recorded and (task.positions is None or position in task.positions)
    ]


def freeze_once(frozen: set[str], source: str) -> None:
    """Let full garbage collections skip what a source loads with its first group: torch's OpInfos, above all.

    A leak is told by a dozen full collections. With all that is loaded to look at they take a second and a half.
    """
    if source not in frozen:
        frozen.add(source)
        gc.collect()
        gc.freeze()


def _run_cases(
    worker: _Worker, task: Task, cases: list[tuple[int, Case]], marker: Marker, computing: GroupComputing
) -> int:
    from ..judging.call_tracer import CallTracer
    from ..model.case import described

    tracer = CallTracer()
    of_group: LaunchesByOverload = {}
    traced_types: set[object] = set()
    executed = 0
    for position, case in cases:
        _announce(marker, position, worker.options.settings.timeout)
        # Tracing every case would cost too much: the first of each combination of argument types shows the overloads
        # that calls reach, and what runs on the CPU unannounced.
        types = (*map(type, case.args), *sorted(case.kwargs))
        traced = None if types in traced_types else tracer
        traced_types.add(types)
        inputs = described(case)
        reached_device = partial(_mark, marker, position, ON_DEVICE)
        if worker.upstream:
            worker.upstream.begin_case()
        with computing.of_case(position) as drained:
            launches: LaunchesByOverload = {}
            executed_here = partial(_note_launches, launches, drained)
            observers = {"tracer": traced, "on_device": reached_device, "on_executed": executed_here}
            outcome = _judged(worker, case, f"{task.key.label}:{position}", **observers)
            grade = grade_of_case(launches, outcome) if launches else None
            if worker.upstream and grade is None:
                grade = worker.upstream.grade(outcome)
            worker.pending.add(partial(worker.store.add_case, task.group, position, outcome, inputs, grade))
            count_case(of_group, launches, grade)
            if launches and outcome.verdict is not CaseVerdict.PASSED:
                kernels = kernels_in(launches)
                worker.pending.add(partial(worker.store.add_case_kernels, task.group, position, kernels))
            _look_inside(worker, task, position, case, outcome, marker)
            if grade is Grade.SHIPPED_KERNEL and outcome.verdict is CaseVerdict.WRONG:
                _move(worker, task, position, case, outcome, kernels_in(launches), marker)
        executed += 1
    worker.pending.add(partial(worker.store.add_called_overloads, task.group, tracer.overloads))
    worker.pending.add(partial(worker.store.add_launches, task.group, of_group))
    return executed


def _run_compiled(worker: _Worker, task: Task, cases: list[tuple[int, Case]], marker: Marker) -> int:
    """The cases under torch.compile; what ran in them and what they call inside is for the other modes to say."""
    from ..model.case import described

    for position, case in cases:
        _announce(marker, position, worker.options.settings.timeout)
        inputs = described(case)
        reached_device = partial(_mark, marker, position, ON_DEVICE)
        seed = worker.options.settings.seed
        judge = partial(judged_compiled, worker.device, task.key, position, case, seed, reached_device)
        known = worker.known
        found = judge() if known is None else known.outcome_of(task.key.label_of(position), judge)
        worker.store.add_compiled(task.group, position, found)
        worker.store.add_case(task.group, position, found.outcome, inputs)
    return len(cases)


def _look_inside(worker: _Worker, task: Task, position: int, case: Case, outcome: Outcome, marker: Marker) -> None:
    """Record which call inside a case that came out wrong is at fault; the case itself is in the store already."""
    from ..judging.inner_calls import fault_inside, worth_a_look

    if not worth_a_look(outcome) or not worker.looking.allows(task.group, outcome):
        return
    worker.pending.write()
    _announce(marker, position, worker.options.settings.timeout, INSIDE)
    with worker.looking.spending():
        at_fault = fault_inside(
            case, worker.device.recorder, worker.options.settings.seed, f"{task.key.label}:{position}"
        )
    worker.store.add_look_inside(task.group, position, at_fault)


def _move(
    worker: _Worker, task: Task, position: int, case: Case, outcome: Outcome, kernels: list[str], marker: Marker
) -> None:
    """Record whether what these kernels gave wrong stands when their mathematics is moved."""
    from ..shipped.case_launches import launches as drained
    from ..shipped.ulp_sensitivity import ulp_sensitivity_of

    if worker.shipped is None or not worker.moving.allows(task.group, outcome, kernels):
        return

    def judge_again() -> tuple[Outcome, Grade | None]:
        _announce(marker, position, worker.options.settings.timeout, INSIDE)
        drained()
        again = _judged(worker, case, f"{task.key.label}:{position}")
        return again, grade_of_case(drained(), again)

    worker.pending.write()
    with worker.moving.spending():
        ulp_sensitivity = ulp_sensitivity_of(worker.shipped, kernels, judge_again)
    if ulp_sensitivity is not None:
        worker.store.add_ulp_sensitivity(task.group, position, ulp_sensitivity)


def _judged(worker: _Worker, case: Case, label: str, **observers: Any) -> Outcome:
    """The verdict on one case, with what this device cannot tell taken out; `observers` go to `judge`."""
    from ...errors import one_line
    from ..judging.judge import judge
    from ..model.tensors_in import leaves

    case.skipped = case.skipped or worker.device.cannot_run(leaves((case.args, case.kwargs)))
    try:
        outcome = judge(case, worker.device.recorder, worker.options.settings.seed, label, **observers)
    except Exception as error:  # a flaw of the auditor costs one case, and is seen
        message = f"not judged, {type(error).__name__}: {one_line(error)}"
        outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "judge", message)
    limit = worker.device.simulator_limit(outcome.message) if outcome.verdict is CaseVerdict.WRONG else ""
    return Outcome(CaseVerdict.SKIPPED, outcome.stage, limit) if limit else outcome


def _announce(marker: Marker, position: int, timeout: float, place: int = ON_CPU) -> None:
    """Say which case comes next, and let the kernel end this process if it takes too long."""
    _mark(marker, position, place)
    begin(timeout)


def _mark(marker: Marker, position: int, place: int) -> None:
    os.pwrite(marker.descriptor, MARK.pack(marker.group, position, place), 0)


def announced(task: Task) -> tuple[int, int] | None:
    """The task's case that a worker announced last, and who had it; None if it announced none of this task."""
    try:
        group, position, place = MARK.unpack(task.marker.read_bytes())
    except (FileNotFoundError, struct.error):
        return None
    return (position, place) if group == task.group else None


def _started() -> _Worker:
    if _failure is not None:
        raise _failure
    if _worker is None:
        raise RuntimeError("the worker process was not started")
    return _worker
