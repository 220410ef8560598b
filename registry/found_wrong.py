"""Wrong results that mpsmith found in torch's kernels and host code for Macs: minimal calls, none observed on a Mac.

Each entry of the files `found_wrong/*.yaml` is a finding, whose key is its name. Calls have the form of the known-wrong
corpus (`known_case`), with the same values on every machine. A finding with an upstream report is in that corpus
instead, unless the entry names the issue.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from .folder import registry_files
from .known_case import KnownCase, Part
from .model import OverloadName, Release, Text
from .parsing import Block, parse, read_text
from .problems import Problem, error_of
from .validation import described

PACKAGED = Path(__file__).parent / "found_wrong"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
RANDOM_FILLS = frozenset({"randn", "rand", "integers", "permutation", "well conditioned"})


class FoundWrong(Part):
    """One wrong result.

    Attributes:
        name: the key of its entry, such as "digamma-near-a-pole".
        summary: one sentence, in our own words.
        operators: the overloads that it is about, the most important one first.
        kernel: a pattern for the names of the kernels; several joined by commas.
        source: file and function of the host code, if no kernel is at fault.
        why: the cause in the code.
        wrong_in: the first and the last of the tried releases that give it; of host code, of the releases whose source
            was read.
        right_from: the first later release whose kernel does not.
        issue: a report in pytorch/pytorch about the same defect, if there is one.
        after: a call to make first: the host code caches its graph and reuses it for `case`.
        case: the call.
    """

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    summary: Text
    operators: Annotated[list[OverloadName], Field(min_length=1)]
    kernel: Text | None = None
    source: Text | None = None
    why: Text
    wrong_in: tuple[Release, Release]
    right_from: Release | None = None
    issue: Annotated[int, Field(gt=0)] | None = None
    after: KnownCase | None = None
    case: KnownCase

    @model_validator(mode="after")
    def _is_the_same_everywhere(self) -> FoundWrong:
        if any(tensor.fill in RANDOM_FILLS for tensor in self.case.tensors()):
            raise ValueError("a finding has values that are the same everywhere, no random fill")
        if self.case.refused or self.case.memory_gib is not None:
            raise ValueError("a finding is a call that the CPU computes on an ordinary machine")
        if (self.kernel is None) == (self.source is None):
            raise ValueError("a finding names either a kernel, or the source of host code")
        return self


@cache
def load() -> dict[str, FoundWrong]:
    """All findings by name, in the order of the files. Raises RegistryError that lists every problem with its place."""
    findings, problems = examine(PACKAGED)
    if problems:
        raise error_of(problems)
    return findings


def of_kernels() -> dict[str, FoundWrong]:
    """Only the findings in shipped kernels. Raises as `load` does."""
    return {name: finding for name, finding in load().items() if finding.kernel}


def examine(folder: Path, operators: Collection[str] = ()) -> tuple[dict[str, FoundWrong], list[Problem]]:
    """The valid findings of a folder by name, and everything that is wrong in its files.

    `operators`: the names of all operators, to find misspelt ones; empty when they are not known.
    """
    findings: dict[str, FoundWrong] = {}
    problems: list[Problem] = []
    for path in registry_files(folder):
        blocks, malformed = parse(read_text(path), path)
        problems += malformed
        for block in blocks:
            if block.operator in findings:
                problems.append(block.problem((), "the name is taken already", at_key=True))
                continue
            finding = _finding_of(block)
            if isinstance(finding, list):
                problems += finding
                continue
            findings[finding.name] = finding
            problems += [
                block.problem(("operators", position), f"there is no operator {overload}")
                for position, overload in enumerate(finding.operators)
                if operators and overload.split(".")[0] not in operators
            ]
    return findings, sorted(problems)


def _finding_of(block: Block) -> FoundWrong | list[Problem]:
    if not isinstance(block.data, dict):
        return [block.problem((), "an entry is a mapping with summary, operators, kernel and case", at_key=True)]
    try:
        return FoundWrong.model_validate({"name": block.operator, **block.data})
    except ValidationError as error:
        return [
            block.problem(tuple(s for s in detail["loc"] if not str(s).startswith("<")), described(detail), at_key=True)
            for detail in error.errors()
        ]
