"""Reads the rules from registry/rules: one entry each, with examples that a test holds against the explainer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ....registry.folder import PACKAGED as OPERATORS
from ....registry.known_case import Part
from ....registry.parsing import Block, parse, read_text
from ....registry.problems import Problem, error_of
from ....registry.validation import described
from ...model.verdicts import CaseVerdict
from .rule import ExplainingRule, HoldsOn

PACKAGED = OPERATORS.parent / "rules"
# Of two rules that match a case, that of the earlier file explains it, or the earlier one of a file.
TOPICS = (
    *("no_kernel", "this_torch", "refused_dtypes", "rounding", "simulated", "no_reference", "not_executed"),
    *("own_kernels", "shipped_unspecified", "cpu_defects", "shipped_defects"),
)


class Example(Part):
    """A case that the rule explains.

    Attributes:
        case: "source:operator:dtype" of its group.
        verdict, stage, message, fallbacks: of its outcome; the verdict is by default the first of the rule's.
        inputs: the case and its inputs, as a report describes them.
        kernels: the shipped kernels that it launched.
        fits: the predictions that it fits.
        unlike: near misses, which the rule must not explain: each says what is otherwise than in the example.
    """

    case: Annotated[str, Field(pattern=r"^[^:]+:[^:]+:\w+$")]
    verdict: CaseVerdict | None = None
    stage: str = "forward"
    message: str = ""
    fallbacks: tuple[str, ...] = ()
    inputs: str = "(x)"
    kernels: tuple[str, ...] = ()
    fits: dict[str, float] = Field(default_factory=dict)
    unlike: tuple[dict[str, Any], ...] = ()

    @property
    def near_misses(self) -> list[Example]:
        """The example with each of the changes."""
        return [Example.model_validate(self.model_dump() | change | {"unlike": ()}) for change in self.unlike]


class RuleEntry(Part):
    """The fields of a rule, as `ExplainingRule` describes them, and its examples."""

    reason: Annotated[str, Field(min_length=40)]
    verdicts: Annotated[tuple[CaseVerdict, ...], Field(min_length=1)]
    message: str = ""
    operators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    inputs: str = ""
    arguments: str = ""
    prediction: str = ""
    at_most: float | None = None
    without_kernel: bool = False
    holds_on: HoldsOn = "both"
    upstream: str = ""
    shipped: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    imported: str = ""
    never_stale: bool = False
    examples: Annotated[tuple[Example, ...], Field(min_length=1)]

    def rule(self, name: str) -> ExplainingRule:
        """The rule without its examples."""
        fields = {field: getattr(self, field) for field in RuleEntry.model_fields if field != "examples"}
        return ExplainingRule(name, **fields)


@cache
def entries() -> Mapping[str, RuleEntry]:
    """The entries of all rules by name, in order. Raises RegistryError that lists every problem with its place."""
    found: dict[str, RuleEntry] = {}
    problems: list[Problem] = []
    for topic in TOPICS:
        blocks, malformed = parse(read_text(path := PACKAGED / f"{topic}.yaml"), path)
        problems += malformed
        for block in blocks:
            if block.operator in found:
                problems.append(block.problem((), "the name is taken already", at_key=True))
            entry = _entry_of(block)
            if isinstance(entry, RuleEntry):
                found[block.operator] = entry
            else:
                problems += entry
    if problems:
        raise error_of(problems)
    return found


@cache
def all_rules() -> tuple[ExplainingRule, ...]:
    """All rules, in order. Raises RegistryError as `entries` does."""
    return tuple(entry.rule(name) for name, entry in entries().items())


def _entry_of(block: Block) -> RuleEntry | list[Problem]:
    try:
        return RuleEntry.model_validate(block.data)
    except ValidationError as error:
        return [block.problem(tuple(each["loc"]), described(each), at_key=True) for each in error.errors()]
