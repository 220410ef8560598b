"""What a coordinator asks of a machine and what it answers: plain data, as JSON text. Imports neither torch nor Dask.

A message says all that a machine needs to know, so that any machine can answer it, at any time, once or twice.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from ....errors import one_line
from ...model.group import GroupKey
from ...model.selection import Settings
from ...store.group_rows import GroupRows
from .columns import by_column, by_group, columns_model
from .errors import ClusterError


@dataclass(frozen=True)
class AuditOptions:
    """What every session of one audit is started with.

    Attributes:
        audit: a name of its own for each start of a coordinator, by which its sessions are ended.
        settings: as a run records them.
        timeout, memory_limit: as in `Settings`.
        release: a torch release to run in an environment of its own; None for the torch of the Dask worker.
    """

    audit: str
    settings: dict[str, Any]
    timeout: float
    memory_limit: int
    release: str | None = None

    @classmethod
    def of(cls, settings: Settings, audit: str, release: str | None = None) -> AuditOptions:
        """The options of an audit with these settings."""
        return cls(audit, settings.recorded(), settings.timeout, settings.memory_limit, release)

    def as_settings(self) -> Settings:
        """The settings of a session: a thread of a Dask worker has one process that executes cases."""
        return Settings.from_recorded(self.settings, workers=1, timeout=self.timeout, memory_limit=self.memory_limit)


@dataclass(frozen=True)
class Introduce:
    """Say what you are."""

    ask: Literal["introduce"] = "introduce"


@dataclass(frozen=True)
class MakePlan:
    """Say which groups there are."""

    ask: Literal["plan"] = "plan"


class GroupWork(NamedTuple):
    """A group to execute: all its cases, or only some positions. A list in JSON, for there are many."""

    source: str
    operator: str
    variant: str
    dtype: str
    mode: str
    positions: tuple[int, ...] | None = None

    @classmethod
    def of(cls, key: GroupKey, positions: Collection[int] | None = None) -> GroupWork:
        """The work on the group with this key."""
        of_group = None if positions is None else tuple(sorted(positions))
        return cls(key.source, key.operator, key.variant, key.dtype, key.mode, of_group)

    @property
    def key(self) -> GroupKey:
        """The group's key."""
        return GroupKey(*self[:5])


@dataclass(frozen=True)
class ExecuteBatch:
    """Execute groups of one mode, on such a device alone.

    `deadly`: kernels shipped with torch that ended a process elsewhere, and are left out.
    """

    groups: tuple[GroupWork, ...]
    device: dict[str, str]
    deadly: tuple[str, ...] = ()
    ask: Literal["execute"] = "execute"


@dataclass(frozen=True)
class ProbeModule:
    """Probe torch.mps itself, but for the names that are `recorded`."""

    device: dict[str, str]
    recorded: tuple[str, ...] = ()
    ask: Literal["probe"] = "probe"


Request = Annotated[Introduce | MakePlan | ExecuteBatch | ProbeModule, Field(discriminator="ask")]


@dataclass(frozen=True)
class WorkerMessage:
    """A request, and the audit it belongs to."""

    options: AuditOptions
    request: Request


@dataclass(frozen=True)
class Introduction:
    """What a machine is: what its results depend on, and a fingerprint of the auditor's own code."""

    environment: dict[str, Any]
    code: str
    answer: Literal["introduction"] = "introduction"


@dataclass(frozen=True)
class Planned:
    """The groups that the audit's settings select, and the kernels that can be launched."""

    groups: tuple[GroupKey, ...]
    environment: dict[str, Any]
    kernels: tuple[str, ...] = ()
    answer: Literal["planned"] = "planned"


@dataclass(frozen=True)
class Executed:
    """The rows of a batch, whole groups, and how many seconds they took."""

    groups: tuple[GroupRows, ...]
    seconds: float
    deadly: tuple[str, ...] = ()
    answer: Literal["executed"] = "executed"


@dataclass(frozen=True)
class ModuleProbed:
    """What the probes of torch.mps showed: name, status, detail."""

    rows: tuple[tuple[str, str, str], ...]
    answer: Literal["probed"] = "probed"


@dataclass(frozen=True)
class WorkerProblem:
    """Why a machine cannot do what it was asked for."""

    reason: str
    answer: Literal["problem"] = "problem"


Answer = Annotated[Introduction | Planned | Executed | ModuleProbed | WorkerProblem, Field(discriminator="answer")]


@cache
def _message() -> TypeAdapter[WorkerMessage]:
    return TypeAdapter(WorkerMessage)


@cache
def _executed_by_column() -> type[BaseModel]:
    """Executed as it is written: the keys of the groups, and their rows by table and column."""
    answer: Any = Literal["executed"]
    return create_model(
        "ExecutedByColumn",
        keys=(tuple[tuple[str, str, str, str, str], ...], ...),
        columns=(columns_model(), ...),
        seconds=(float, ...),
        deadly=(tuple[str, ...], ...),
        answer=(answer, ...),
    )


@cache
def _answer() -> TypeAdapter[Any]:
    kinds: Any = Introduction | Planned | _executed_by_column() | ModuleProbed | WorkerProblem
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kinds, Field(discriminator="answer")])
    return adapter


def as_text(said: WorkerMessage | Introduction | Planned | Executed | ModuleProbed | WorkerProblem) -> str:
    """One line of JSON; infinite errors are written as Python writes them."""
    return json.dumps(said, default=_fields, separators=(",", ":"))


def _fields(said: Any) -> dict[str, Any]:
    if not isinstance(said, Executed):
        return {field.name: getattr(said, field.name) for field in fields(said)}
    keys = [tuple(_fields(rows.key).values()) for rows in said.groups]
    rest = {"seconds": said.seconds, "deadly": said.deadly, "answer": said.answer}
    return {"keys": keys, "columns": by_column(said.groups), **rest}


def is_problem(text: str) -> bool:
    """Whether an answer of ours says no: its kind stands last."""
    return text.rstrip().endswith('"answer":"problem"}')


def message_in(text: str) -> WorkerMessage:
    """The message that a text holds. Raises ClusterError where it holds none."""
    try:
        return _message().validate_json(text)
    except ValidationError as error:
        raise ClusterError(f"not a message of this mpsmith (install the same everywhere): {one_line(error)}") from error


def answer_in(text: str | bytes) -> Introduction | Planned | Executed | ModuleProbed | WorkerProblem:
    """The answer that a text holds. Raises ClusterError where it holds none."""
    try:
        answer: Any = _answer().validate_json(text)
    except ValidationError as error:
        raise ClusterError(f"not an answer of this mpsmith (install the same everywhere): {one_line(error)}") from error
    if isinstance(answer, _executed_by_column()):
        found: Any = answer
        groups = by_group([GroupKey(*key) for key in found.keys], found.columns)
        return Executed(groups, found.seconds, found.deadly)
    said: Introduction | Planned | ModuleProbed | WorkerProblem = answer
    return said


def packed(text: str) -> bytes:
    """A text as it crosses the network."""
    return zlib.compress(text.encode(), 1)


# What a batch can hold at most, unpacked: an answer that claims more is no answer.
MOST_BYTES = 1 << 30


def unpacked(data: bytes) -> bytes:
    """The text again. Raises ClusterError where it is damaged or too large."""
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ClusterError(f"a damaged answer: {error}") from error
    if stream.unconsumed_tail or not stream.eof:
        raise ClusterError("a damaged answer: it is cut off, or too large")
    return text
