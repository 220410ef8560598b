"""The known-wrong corpus: wrong results that users reported on mps, as cases that an audit runs before any other.

Each entry of the files `known_wrong/*.yaml` is a report; its key is the number of the issue in pytorch/pytorch. A case
is data (`known_case`), so adding one needs no Python; `audit.cases.sources.known_wrong` makes the calls.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from ..errors import near
from .folder import PACKAGED as PACKAGED_REGISTRY
from .folder import VARIABLE, folder_asked_for, registry_files
from .known_case import INTEGER, KnownCase, Part, TensorInput, View
from .model import OverloadName, Release, Text
from .parsing import Block, parse, read_text
from .problems import Problem, RegistryError, error_of, shown
from .torch_release import is_older
from .validation import described

FOLDER_NAME = "known_wrong"
PACKAGED = Path(__file__).parent / FOLDER_NAME
ISSUES = "https://github.com/pytorch/pytorch/issues"

WrongClass = Literal[
    "wrong result", "wrong shape", "wrong gradient", "abort", "refuses", "missing error", "memory corruption"
]


MacOS = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]
# What gave the wrong answer: a kernel that torch ships compiled, one that it compiles at run time, a graph or a kernel
# of Apple's, torch's host code (checks, strides, views, blits), or the allocator.
CausePart = Literal["Metal kernel", "Metal source", "MPSGraph", "host code", "allocator", "unknown"]


class Cause(Part):
    """Which part of the backend causes a report's wrong answer.

    Attributes:
        part: the part of the backend.
        kernel: a pattern for the names of the shipped kernels, if they are the cause; several joined by commas.
        wrong_in: the first and the last of the tried releases whose shipped kernel gives the reported result
            (docs/shipped_kernels.md).
        right_from: the first later release whose kernel does not.
        note: the reason, or why a shipped kernel does not show it.
    """

    part: CausePart
    kernel: Text | None = None
    wrong_in: tuple[Release, Release] | None = None
    right_from: Release | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _fits_its_part(self) -> Cause:
        if (self.part == "Metal kernel") != (self.kernel is not None):
            raise ValueError("a kernel is named where the part is 'Metal kernel', and only there")
        if self.kernel is not None and not (self.wrong_in or self.note):
            raise ValueError("a kernel needs wrong_in, the releases that give the reported result, or a note")
        if self.right_from and not self.wrong_in:
            raise ValueError("right_from needs wrong_in")
        return self


class HostCodeRun(Part):
    """The results of a release's own host code on Linux, with a stand-in for MPSGraph: simulated.

    Attributes:
        shown_by: the simulated versions of macOS on which it gives the reported symptom, by release.
        not_shown: why no release that was tried gives it.
    """

    shown_by: dict[Release, Annotated[tuple[MacOS, ...], Field(min_length=1)]] = Field(default_factory=dict)
    not_shown: Text | None = None

    @model_validator(mode="after")
    def _has_shown_by_or_not_shown(self) -> HostCodeRun:
        if bool(self.shown_by) == bool(self.not_shown):
            raise ValueError("either shown_by, or not_shown and why")
        return self


class KnownReport(Part):
    """What one upstream issue reports.

    Attributes:
        issue: its number in pytorch/pytorch; in the files it is the key of the entry.
        summary: one sentence, in our own words.
        wrong_class: what kind of wrong it is; in the files `class`.
        operators: the overloads that it is about, the most important one first.
        first_affected, last_affected: releases of torch in which it was seen, as far as is known.
        cause: where the wrong answer comes from, as far as is known.
        host_code: what host code of releases gives.
        cases: calls that show it.
    """

    issue: Annotated[int, Field(gt=0)]
    summary: Text
    wrong_class: WrongClass = Field(alias="class")
    operators: Annotated[list[OverloadName], Field(min_length=1)]
    first_affected: Release | None = None
    last_affected: Release | None = None
    cause: Cause | None = None
    host_code: HostCodeRun | None = None
    cases: Annotated[list[KnownCase], Field(min_length=1)]

    @model_validator(mode="after")
    def _releases_are_in_order(self) -> KnownReport:
        first, last = self.first_affected, self.last_affected
        if first and last and is_older(last, first):
            raise ValueError(f"first_affected {first} comes after last_affected {last}")
        return self

    @property
    def url(self) -> str:
        """Where the report can be read."""
        return f"{ISSUES}/{self.issue}"

    def overload_of(self, case: KnownCase) -> str:
        """The overload that a case is about: the one named like its call, else the report's first."""
        called = case.call.rsplit(".", 1)[-1].strip("_")
        named = (name for name in self.operators if _base(name).strip("_") == called)
        return next(named, self.operators[0])

    @property
    def affected(self) -> str:
        """The releases that are known to be affected, for people; "" when none is."""
        ends = dict.fromkeys(end for end in (self.first_affected, self.last_affected) if end)
        return " to ".join(ends)


def corpus_folder(registry: Path | None = None) -> Path:
    """The corpus that belongs to a registry: the package's own, or the folder `known_wrong` in any other registry."""
    chosen = folder_asked_for(registry) or PACKAGED_REGISTRY
    return PACKAGED if chosen == PACKAGED_REGISTRY else chosen / FOLDER_NAME


def load() -> dict[int, KnownReport]:
    """All reports by issue: the package's own, and those of the registry that MPSMITH_REGISTRY names.

    Raises RegistryError that lists every problem with its file and line.
    """
    return dict(_loaded(os.environ.get(VARIABLE)))


@cache
def _loaded(variable: str | None) -> Mapping[int, KnownReport]:
    reports, problems = examine(PACKAGED)
    if variable:
        own, own_problems = examine(corpus_folder(Path(variable)))
        reports, problems = reports | own, [*problems, *own_problems]
    if problems:
        raise error_of(problems)
    return reports


def examine(folder: Path, operators: Collection[str] = ()) -> tuple[dict[int, KnownReport], list[Problem]]:
    """The valid reports of a folder by issue, and everything that is wrong in its files; nothing where there is none.

    `operators`: the names of all operators, to find misspelt ones; empty when they are not known.
    Raises RegistryError for a folder that cannot be listed.
    """
    try:
        paths = registry_files(folder)
    except OSError as error:
        raise RegistryError(f"cannot read the folder {shown(folder)}: {error.strerror or error}") from error
    reports: dict[int, KnownReport] = {}
    problems: list[Problem] = []
    places: dict[str, Block] = {}
    for path in paths:
        try:
            blocks, malformed = parse(read_text(path), path)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(path, 1, 1, f"cannot be read as UTF-8 text: {error}"))
            continue
        problems += malformed
        for block in blocks:
            earlier = places.setdefault(block.operator, block)
            report_or_problems = report_of(block)
            if earlier is not block:
                place = f"{shown(earlier.path)}:{earlier.key.start_mark.line + 1}"
                problems.append(block.problem((), f"the issue has an entry already, at {place}", at_key=True))
            elif isinstance(report_or_problems, KnownReport):
                reports[report_or_problems.issue] = report_or_problems
                problems += _unknown_operators(block, report_or_problems, operators)
            else:
                problems += report_or_problems
    return reports, sorted(problems)


def reports_of(operator: str, reports: Iterable[KnownReport]) -> list[KnownReport]:
    """The reports about any overload of an operator (`aten::where`), by issue."""
    named = (report for report in reports if any(name.split(".")[0] == operator for name in report.operators))
    return sorted(named, key=lambda report: report.issue)


def report_of(block: Block) -> KnownReport | list[Problem]:
    """The report in a block of a file, or everything that is wrong with the block."""
    if not INTEGER.fullmatch(block.operator):
        return [block.problem((), "the key is the number of an issue in pytorch/pytorch", at_key=True)]
    if not isinstance(block.data, dict):
        return [block.problem((), "an entry is a mapping with summary, class, operators and cases", at_key=True)]
    try:
        return KnownReport.model_validate({"issue": block.operator, **block.data})
    except ValidationError as error:
        return [_located(block, details) for details in error.errors()]


def _located(block: Block, details: ErrorDetails) -> Problem:
    location = tuple(step for step in details["loc"] if not str(step).startswith("<"))
    message = described(details)
    if details["type"] == "extra_forbidden":
        name = str(location[-1])
        message = f"unknown key '{name}'{near(name, _keys_at(details['loc'][:-1]))}"
    at_key = details["type"] in ("extra_forbidden", "missing", "value_error")
    return block.problem(location, message, at_key=at_key)


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """The keys that the model has at this location."""
    names = [step for step in location if isinstance(step, str)]
    models: dict[str, type[BaseModel]] = {
        "<tensor>": TensorInput,
        "out": TensorInput,
        "views": View,
        "cause": Cause,
        "host_code": HostCodeRun,
        "cases": KnownCase,
    }
    model = next((models[name] for name in reversed(names) if name in models), KnownReport)
    return [field.alias or name for name, field in model.model_fields.items() if name != "issue"]


def _unknown_operators(block: Block, report: KnownReport, operators: Collection[str]) -> Iterator[Problem]:
    for position, overload in enumerate(report.operators):
        operator = overload.split(".")[0]
        if operators and operator not in operators:
            # Compared without namespaces: the one that nearly all share would make any two names alike.
            hint = near(operator.rpartition("::")[2], [name.rpartition("::")[2] for name in operators])
            yield block.problem(("operators", position), f"there is no operator {operator}{hint}")


def _base(overload: str) -> str:
    return overload.split("::", 1)[-1].split(".", 1)[0]
