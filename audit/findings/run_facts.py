"""Facts about a run: its device, and how much was executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..model.verdicts import Grade
from ..store.records import host_code_in
from .grading import Grading
from .run_data import RunData


@dataclass(frozen=True)
class RunFacts:
    """The device and the number of executed cases: the same for two runs of the same code on the same machine.

    Attributes:
        environment: what the results depend on.
        recorded: all cases in the store.
        executed: the cases that ran on the mps device.
        gradients: the cases whose gradients were compared.
        repeating: the samples that were left out because they repeat others.
        grades: the executed cases by grade.
    """

    finished: bool
    simulated: bool
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    groups_planned: int
    groups_done: int
    recorded: int
    executed: int
    gradients: int
    repeating: int = 0
    grades: Mapping[Grade, int] = field(default_factory=dict)

    @property
    def host_code(self) -> str:
        """The release or folder of PyTorch's host code that ran, with the version of macOS that it saw; "" for none."""
        return host_code_in(self.environment)

    @property
    def complete(self) -> bool:
        """Whether every planned group was executed to its end."""
        return self.finished and self.groups_done == self.groups_planned


@dataclass(frozen=True)
class RunExecution:
    """Facts that differ between two runs of the same code: shown in a terminal, never published.

    Attributes:
        run: its number in the store.
        duration: wall time from start to end in seconds; None while it is unfinished.
        case_seconds: the sum over cases, of all workers.
        numbers: the store's number of each case that the summary refers to, by its label.
    """

    run: int
    started: str
    duration: float | None
    case_seconds: float
    numbers: Mapping[str, int]


def run_facts(data: RunData, grading: Grading) -> RunFacts:
    """The facts of a run."""
    return RunFacts(
        finished=data.run.finished is not None,
        simulated=data.run.simulated,
        settings=data.run.settings,
        environment=_decisive(data.run.environment),
        groups_planned=len(data.groups),
        groups_done=sum(group.done for group in data.groups),
        recorded=sum(count.cases for count in data.counts),
        executed=sum(count.cases for count in data.counts if count.verdict.executed),
        gradients=sum(count.gradients for count in data.counts),
        repeating=data.repeating,
        grades=grading.cases,
    )


# A simulated device does not depend on these: `cpu` names which of torch's CPU kernels it runs.
HARDWARE = ("chip", "machine", "os")


def _decisive(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the environment that results depend on. On a simulated device the machine is not part of it."""
    left_out = HARDWARE if environment.get("simulated") else ()
    return {name: value for name, value in environment.items() if name not in left_out}


def run_execution(data: RunData, numbers: Mapping[str, int]) -> RunExecution:
    """Execution facts of a run. `numbers`: the store's number of each case that the summary refers to."""
    run, duration = data.run, None
    if run.finished is not None:
        duration = (datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)).total_seconds()
    return RunExecution(
        run=run.id,
        started=run.started,
        duration=duration,
        case_seconds=sum(count.seconds for count in data.counts),
        numbers=numbers,
    )
