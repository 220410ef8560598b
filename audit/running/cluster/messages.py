"""Requests of the coordinator and answers of the machines: plain data, as JSON text. Imports neither torch nor Dask.

A request holds everything that a machine needs, so any machine can answer it, at any time, once or twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from ....errors import MpsmithError, one_line
from ...model.group import GroupKey
from ...model.selection import Settings
from ...store.group_rows import VERDICTS, GroupRows


class ClusterError(MpsmithError):
    """The cluster cannot be used."""


class StoppedError(ClusterError):
    """The cluster failed after the audit had begun: `--resume` continues it."""


@dataclass(frozen=True)
class AuditOptions:
    """The options with which every session of one audit is started.

    Attributes:
        audit: unique for each start of a coordinator; sessions are ended by it.
        settings: as a run records them.
        timeout, memory_limit: as in `Settings`.
    """

    audit: str
    settings: dict[str, Any]
    timeout: float
    memory_limit: int

    @classmethod
    def of(cls, settings: Settings, audit: str) -> AuditOptions:
        """The options of an audit with these settings."""
        return cls(audit, settings.recorded(), settings.timeout, settings.memory_limit)

    def as_settings(self) -> Settings:
        """The settings of a session. Each thread of a Dask worker has one process that executes cases."""
        return Settings.from_recorded(self.settings, workers=1, timeout=self.timeout, memory_limit=self.memory_limit)


@dataclass(frozen=True)
class Introduce:
    """Report the environment and the code of the machine."""

    request: Literal["introduce"] = "introduce"


@dataclass(frozen=True)
class MakePlan:
    """Report the groups to execute."""

    request: Literal["plan"] = "plan"


@dataclass(frozen=True)
class GroupWork:
    """A group to execute: all its cases, or only some positions."""

    key: GroupKey
    positions: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ExecuteBatch:
    """Execute groups of one mode.

    `crashing`: shipped kernels that ended a process on another machine; they are not launched.
    """

    groups: tuple[GroupWork, ...]
    crashing: tuple[str, ...] = ()
    request: Literal["execute"] = "execute"


@dataclass(frozen=True)
class ProbeModule:
    """Probe torch.mps itself, except for the names in `recorded`."""

    recorded: tuple[str, ...] = ()
    request: Literal["probe"] = "probe"


Request: TypeAlias = Annotated[Introduce | MakePlan | ExecuteBatch | ProbeModule, Field(discriminator="request")]


@dataclass(frozen=True)
class WorkerMessage:
    """A request, and the options of its audit."""

    options: AuditOptions
    request: Request


@dataclass(frozen=True)
class Introduction:
    """What the results of a machine depend on, and a fingerprint of its copy of mpsmith."""

    environment: dict[str, Any]
    code: str
    answer: Literal["introduction"] = "introduction"


@dataclass(frozen=True)
class Planned:
    """The groups that the audit's settings select, and the shipped kernels that can be launched."""

    groups: tuple[GroupKey, ...]
    environment: dict[str, Any]
    kernels: tuple[str, ...] = ()
    answer: Literal["planned"] = "planned"


@dataclass(frozen=True)
class Executed:
    """The rows of a batch: whole groups, in the order of the request."""

    groups: tuple[GroupRows, ...]
    crashing: tuple[str, ...] = ()
    answer: Literal["executed"] = "executed"


@dataclass(frozen=True)
class ModuleProbed:
    """The results of the probes of torch.mps: name, status, detail."""

    rows: tuple[tuple[str, str, str], ...]
    answer: Literal["probed"] = "probed"


@dataclass(frozen=True)
class WorkerProblem:
    """Why a machine cannot answer a request."""

    reason: str
    answer: Literal["problem"] = "problem"


Answer: TypeAlias = Annotated[
    Introduction | Planned | Executed | ModuleProbed | WorkerProblem, Field(discriminator="answer")
]


@cache
def _adapter(of: Any) -> TypeAdapter[Any]:
    return TypeAdapter(of)


def as_text(message: Any) -> str:
    """A message or an answer as one line of JSON; infinite errors are written as Python writes them."""
    return json.dumps(
        message, default=lambda part: {f.name: getattr(part, f.name) for f in fields(part)}, separators=(",", ":")
    )


def is_problem(text: str) -> bool:
    """Whether the text of an answer is a WorkerProblem: `answer` is its last field."""
    return text.rstrip().endswith('"answer":"problem"}')


def read_message(text: str) -> WorkerMessage:
    """The message in a text. Raises ClusterError for any other text."""
    message: WorkerMessage = _read(text, WorkerMessage, "a message")
    return message


def read_answer(text: str) -> Answer:
    """The answer in a text. Raises ClusterError for any other text."""
    answer: Answer = _read(text, Answer, "an answer")
    if isinstance(answer, Executed):
        verdicts = {str(row[1]) for rows in answer.groups for row in rows.of("cases")}
        if unknown := verdicts - VERDICTS:
            raise ClusterError(f"there is no verdict {min(unknown)!r}")
    return answer


def _read(text: str, of: Any, what: str) -> Any:
    try:
        return _adapter(of).validate_json(text)
    except ValidationError as error:
        raise ClusterError(f"not {what} of this mpsmith (install the same everywhere): {one_line(error)}") from error
