"""Data that the parent of an audit and its worker processes exchange: options, tasks, plans and marker files."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model.group import GroupKey
from ..model.selection import Settings
from ..model.verdicts import Outcome

if TYPE_CHECKING:
    from ..compiled.verdicts import CompiledOutcome
    from ..model.launches import LaunchesByOverload

# A worker announces the group and the position of its current case, and the stage: on the CPU, on the device, or run
# again to find the call at fault.
MARK = struct.Struct("<qqq")
ON_CPU, ON_DEVICE, RERUN = 0, 1, 2
# The position that a worker announces while it makes the samples of a group.
MAKING_SAMPLES = -1


@dataclass(frozen=True)
class WorkerOptions:
    """The options of a worker process."""

    settings: Settings
    mode: str
    store: Path
    scratch: Path
    parent: int


@dataclass(frozen=True)
class Task:
    """One group to execute: all its cases, or only some positions.

    `marker`: the file in which the worker announces its current case; tasks that are sent to one worker share it.
    `cautious`: each case is written before the next begins, so that the announced case is the one at fault.
    `ends_group`: the group is done afterwards; false for a case that is judged alone.
    """

    group: int
    key: GroupKey
    marker: Path
    positions: frozenset[int] | None = None
    cautious: bool = False
    ends_group: bool = True


@dataclass(frozen=True)
class Marker:
    """The open file in which a worker announces its current case of a group."""

    descriptor: int
    group: int

    @classmethod
    def open(cls, task: Task) -> Marker:
        """The marker file of a task, open for writing."""
        return cls(os.open(task.marker, os.O_WRONLY | os.O_CREAT, 0o600), task.group)

    def announce(self, position: int, stage: int) -> None:
        """Write the current case and its stage."""
        os.pwrite(self.descriptor, MARK.pack(self.group, position, stage), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


@dataclass(frozen=True)
class AuditPlan:
    """The groups to execute, as selected by a worker, because the parent never loads torch.

    `kernels`: the names of the shipped kernels that can be launched.
    """

    groups: list[GroupKey]
    environment: dict[str, Any]
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """One case executed again: its outcome, both results as text, and its launches of shipped kernels.

    `compiled`: the outcome under torch.compile, for a compiled case; such a case has no results.
    `fits`: the predictions that a wrong case fits.
    """

    outcome: Outcome
    inputs: str
    cpu: str
    mps: str
    simulated: bool
    launches: LaunchesByOverload
    compiled: CompiledOutcome | None = None
    fits: Mapping[str, float] = field(default_factory=dict)


def announced_case(task: Task) -> tuple[int, int] | None:
    """The position and stage of the task's case that its worker announced last; None if it announced none."""
    try:
        group, position, stage = MARK.unpack(task.marker.read_bytes())
    except (FileNotFoundError, struct.error):
        return None
    return (position, stage) if group == task.group else None
