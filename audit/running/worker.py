"""A worker process: makes the cases of a group, judges them and stores each result at once.

A case may abort, hang or use all memory; then this process ends, and the parent reads from the marker file which case
it was. Nothing here may import torch at the top: see `worker_setup`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from ...errors import MpsmithError
from ..model import time_limit
from ..model.group import COMPILED_MODES, GroupKey
from ..model.launches import count_case, grade_of_case, kernels_in
from ..model.selection import Samples
from ..model.verdicts import CaseVerdict, Grade, Outcome
from ..shipped.kernels import slow_positions
from . import last_call
from .case_reruns import find_inner_fault, predict, record_ulp_sensitivity
from .compiled import SameVerdict, compiled_groups, judged_compiled, with_own_sources
from .device_health import RECYCLED
from .one_case import announce, judged
from .predicting import predictions_of
from .rerun_budget import rerun_limits_of_group
from .worker_exit import at_risk
from .worker_limits import exceeds_memory_limit
from .worker_setup import Worker, current_worker
from .worker_tasks import MAKING_SAMPLES, ON_DEVICE, AuditPlan, Marker, Replay, Task

if TYPE_CHECKING:
    from ..cases.covering.pruning import Chosen
    from ..compiled.verdicts import CompiledOutcome
    from ..judging.execution import Execution
    from ..judging.judge import Trial
    from ..model.case import Case
    from ..model.launches import LaunchesByOverload
    from ..shipped.case_launches import Drained, GroupComputing
    from ..shipped.finding_result import FindingResult

# Making all samples of a group may take longer than running one of them.
GENERATION_TIMEOUT_FACTOR = 5.0


def plan() -> AuditPlan:
    """All groups that the settings select, from every source."""
    from ..cases.covering.quick_level import of_quick_level
    from ..model.case import in_order_of_execution, is_wanted, select

    worker = current_worker()
    settings = worker.options.settings
    unknown = sorted(set(settings.sources) - set(worker.sources))
    if unknown:
        raise MpsmithError(f"unknown case source {unknown[0]!r} (there are {', '.join(worker.sources)})")
    selecting = with_own_sources(settings) if settings.compiled else settings
    wanted = [source for source in worker.sources.values() if is_wanted(source, selecting)]
    kernels = worker.host_code.kernel_names() if worker.host_code else ()
    if worker.shipped:
        kernels = tuple(worker.shipped.names)
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
    """Facts about this machine that the results of the audit depend on."""
    from .environment import environment

    worker = current_worker()
    settings = worker.options.settings
    facts = environment(worker.device) | ({"shipped": settings.shipped} if worker.shipped else {})
    return facts | ({"host_code": worker.host_code.facts} if worker.host_code else {})


def run_groups(tasks: Sequence[Task]) -> list[int]:
    """Execute groups one after another; return how many cases of each were executed.

    Tasks are sent in batches, because sending one costs as much as executing a case.
    """
    health = current_worker().health
    if health is not None:
        health.require_at_start()
    executed: list[int] = []
    for task in tasks:
        executed.append(run_group(task))
        if health is None and exceeds_memory_limit():  # another worker goes on with the rest
            os._exit(RECYCLED)
    if health is not None:
        health.recycle_if_full(sum(executed))
    return executed


def run_group(task: Task) -> int:
    """Execute the cases of one group that are not in the store yet; return how many were executed."""
    from ...errors import one_line

    worker = current_worker()
    if worker.shipped is not None:
        worker.shipped.skip_crashing_kernels()
    marker = Marker.open(task)
    try:
        announce(marker, MAKING_SAMPLES, worker.options.settings.timeout * GENERATION_TIMEOUT_FACTOR)
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
        if worker.host_code:
            worker.host_code.begin_group()
        open_cases = _open_cases(worker, task, chosen.cases)
        if task.key.mode in COMPILED_MODES:
            executed = _run_compiled(worker, task, open_cases, marker)
        else:
            executed = _run_cases(worker, task, open_cases, marker, _computing(worker, task, chosen))
        if not task.ends_group:
            worker.pending.write()
            return executed
        if task.key.mode == "fallback":  # the strict mode repeats some of the same cases
            worker.pending.add(partial(worker.store.add_covered, task.group, chosen.repeating, chosen.levels))
        worker.pending.add(partial(worker.store.mark_done, task.group))
        worker.pending.write()
        return executed
    finally:
        time_limit.stop()
        marker.close()


def rerun_crashed_case(task: Task) -> None:
    """Run the task's only case, which ended a worker, again, and record each inner call before it is made."""
    from ..judging.inner_calls import fault_inside

    worker, case, label, computing = _only_case(task)
    if worker.shipped is not None:
        worker.shipped.skip_no_kernels()
    descriptor = os.open(last_call.path_of(task.marker), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)):
        at_fault = fault_inside(
            case, worker.device.recorder, worker.options.settings.seed, label, partial(last_call.note, descriptor)
        )
    os.close(descriptor)
    worker.store.add_inner_fault(task.group, _position(task), at_fault)


def replay(task: Task) -> Replay:
    """Execute the task's only case and describe both results."""
    from ...simulator.device.pause import paused
    from ..judging.execution import shown_execution
    from ..model.case import described

    worker, case, label, computing = _only_case(task)
    if task.key.mode in COMPILED_MODES:
        compiled = _judged_compiled(worker, task, case)
        return Replay(compiled.outcome, described(case), "", "", worker.device.simulated, {}, compiled)
    shown: list[str] = []
    launches: LaunchesByOverload = {}
    wrong: list[Trial] = []

    def show(trial: Trial) -> None:
        launches.update(drained())  # printing a tensor of the device makes calls, too
        with paused():
            shown.extend((shown_execution(trial.cpu), shown_execution(trial.mps)))
        if trial.can_be_predicted:
            wrong.append(trial)

    with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)) as drained:
        outcome = judged(worker, case, label, on_executed=show)
        launches.update({} if shown else drained())
        fits, note = predictions_of(worker, wrong)
        outcome = outcome.with_note(note)
    worker.require_device()
    cpu, mps = shown or (shown_execution(None), shown_execution(None))
    return Replay(outcome, described(case), cpu, mps, worker.device.simulated, launches, fits=fits)


def script(task: Task) -> str:
    """Shrink the task's only case as long as it fails in the same way, and write a program that needs only torch."""
    from .reproduction.script import script_of
    from .reproduction.shrinking import shrink

    worker, case, label, computing = _only_case(task)
    if task.key.mode in COMPILED_MODES:
        same_verdict = SameVerdict(lambda simpler: _judged_compiled(worker, task, simpler))
        smallest, outcome = shrink(case, same_verdict)
        return script_of(smallest, task.key, outcome, simulated=worker.device.simulated, metal=same_verdict.source)

    def judge_again(simpler: Case) -> Outcome:
        with at_risk(worker.options.settings.timeout), computing.of_case(_position(task)):
            return judged(worker, simpler, label)

    smallest, outcome = shrink(case, judge_again)
    return script_of(smallest, task.key, outcome, simulated=worker.device.simulated)


def launch_findings(name: str) -> FindingResult:
    """Make the call of a finding with this worker's shipped kernels."""
    from ...registry.found_wrong import load
    from ..shipped.finding_run import result_of

    worker = current_worker()
    assert worker.shipped is not None
    with at_risk(worker.options.settings.timeout):
        return result_of(load()[name], worker.shipped, worker.device.recorder)


def _judged_compiled(worker: Worker, task: Task, case: Case) -> CompiledOutcome:
    settings = worker.options.settings
    with at_risk(settings.timeout):
        return judged_compiled(worker.device, task.key, _position(task), case, settings.seed, lambda: None)


def _only_case(task: Task) -> tuple[Worker, Case, str, GroupComputing]:
    worker = current_worker()
    if worker.health is not None:
        worker.health.require_at_start()
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


def _computing(worker: Worker, task: Task, chosen: Chosen) -> GroupComputing:
    """Decide which cases of a group use shipped kernels, if there are any, and the checking modes of kernels."""
    from ..cases.covering.pruning import elements
    from ..shipped.case_choice import modes_of_cases, positions_through_shipped
    from ..shipped.case_launches import GroupComputing, host_code_launches

    source = task.key.source
    if worker.shipped is None:
        if worker.host_code is None or not worker.host_code.built.kernels:
            return GroupComputing(None)
        return GroupComputing(None, modes_of_cases(source, chosen.cases), host_code_launches)
    sizes = {position: elements(case) for position, case in chosen.cases.items()}
    samples = worker.options.settings.shipped_samples
    through = positions_through_shipped(source, chosen.levels, sizes, samples)
    return GroupComputing(through - slow_positions(worker.options.scratch, task.group), modes_of_cases(source, through))


def _choose_cases(worker: Worker, key: GroupKey) -> Chosen:
    from ..cases.covering.pruning import choose_cases

    settings = worker.options.settings
    chosen = choose_cases(worker.sources[key.source], key, settings.samples, settings.seed)
    freeze_once(worker.frozen, key.source)
    return chosen


def _note_execution(
    into: LaunchesByOverload, drained: Drained, wrong: list[Trial], on_equal: Callable[[Execution], None], trial: Trial
) -> None:
    """Record a wrong trial, and the launches. Leak detection, which comes later, would add launches of repeated calls.

    `on_equal` gets the CPU's run of a trial whose values do not differ.
    """
    into.update(drained())
    if trial.can_be_predicted:
        wrong.append(trial)
    if not trial.differs_in_values and trial.cpu is not None and trial.mps is not None:
        on_equal(trial.cpu)


def _open_cases(worker: Worker, task: Task, cases: dict[int, Case]) -> list[tuple[int, Case]]:
    """The cases of the task that are not in the store yet."""
    recorded = worker.store.positions(task.group)
    return [
        (position, case)
        for position, case in cases.items()
        if position not in recorded and (task.positions is None or position in task.positions)
    ]


def freeze_once(frozen: set[str], source: str) -> None:
    """Let full garbage collections skip what a source loads with its first group, above all torch's OpInfos.

    Leak detection runs a dozen full collections, which would take 1.5 seconds with these objects.
    """
    if source not in frozen:
        frozen.add(source)
        gc.collect()
        gc.freeze()


def _run_cases(
    worker: Worker, task: Task, cases: list[tuple[int, Case]], marker: Marker, computing: GroupComputing
) -> int:
    from ..cases.calls.invocation import SchemaCall
    from ..judging.call_tracer import CallTracer, is_traceable
    from ..judging.inner_calls import may_have_faulty_call
    from ..model.case import described
    from .input_dependence import InputDependence

    tracer = CallTracer()
    dependence = InputDependence(task.key.operator)
    inner_call_reruns, ulp_reruns = rerun_limits_of_group(worker.store, task.group)
    of_group: LaunchesByOverload = {}
    traced_types: set[object] = set()
    executed = 0
    for position, case in cases:
        announce(marker, position, worker.options.settings.timeout)
        # Tracing every case would cost too much: trace the first of each combination of argument types. It shows
        # which overloads the call reaches and which run on the CPU without a warning.
        types = (*map(type, case.args), *sorted(case.kwargs))
        traceable = is_traceable(case)
        traced = tracer if traceable and types not in traced_types else None
        if traceable:
            traced_types.add(types)
        elif isinstance(case.call, SchemaCall):
            tracer.add(case.call.__name__, outermost=True)
        inputs = described(case)
        reached_device = partial(marker.announce, position, ON_DEVICE)
        if worker.host_code:
            worker.host_code.begin_case()
        with computing.of_case(position) as drained:
            launches: LaunchesByOverload = {}
            wrong: list[Trial] = []
            observe = partial(_note_execution, launches, drained, wrong, partial(dependence.probe, position, case))
            observers = {"tracer": traced, "on_device": reached_device, "on_executed": observe}
            outcome = judged(worker, case, f"{task.key.label}:{position}", **observers)
            grade, kernels = grade_of_case(launches, outcome) if launches else None, kernels_in(launches)
            if worker.host_code:
                grade = worker.host_code.end_case(outcome)
            worker.pending.add(partial(worker.store.add_case, task.group, position, outcome, inputs, grade))
            count_case(of_group, launches, grade)
            if kernels and outcome.verdict is not CaseVerdict.PASSED:
                worker.pending.add(partial(worker.store.add_case_kernels, task.group, position, kernels))
            predict(worker, task, position, wrong, marker)
            if may_have_faulty_call(outcome) and inner_call_reruns.allows(outcome):
                find_inner_fault(worker, task, position, case, marker)
            if (
                grade is Grade.SHIPPED_KERNEL
                and outcome.verdict is CaseVerdict.WRONG
                and ulp_reruns.allows(outcome, kernels)
            ):
                record_ulp_sensitivity(worker, task, position, case, kernels, marker)
        if task.cautious:
            worker.pending.write()
        executed += 1
    worker.pending.add(partial(worker.store.add_called_overloads, task.group, tracer.overloads))
    worker.pending.add(partial(worker.store.add_launches, task.group, of_group))
    if (note := dependence.note) and task.positions is None and cases[0][0] == 0:
        worker.pending.add(partial(worker.store.add_note, task.group, dependence.last, note))
    if worker.host_code:
        worker.pending.add(partial(worker.store.add_host_work, task.group, worker.host_code.take_work()))
    return executed


def _run_compiled(worker: Worker, task: Task, cases: list[tuple[int, Case]], marker: Marker) -> int:
    """Execute cases under torch.compile; unlike in other modes, no fallbacks and inner calls are recorded."""
    from ..model.case import described

    for position, case in cases:
        announce(marker, position, worker.options.settings.timeout)
        inputs = described(case)
        reached_device = partial(marker.announce, position, ON_DEVICE)
        seed = worker.options.settings.seed
        judge = partial(judged_compiled, worker.device, task.key, position, case, seed, reached_device)
        compiled = (
            judge() if worker.outcomes is None else worker.outcomes.outcome_of(task.key.label_of(position), judge)
        )
        worker.pending.add(partial(worker.store.add_compiled, task.group, position, compiled))
        worker.pending.add(partial(worker.store.add_case, task.group, position, compiled.outcome, inputs))
        if task.cautious:
            worker.pending.write()
    return len(cases)
