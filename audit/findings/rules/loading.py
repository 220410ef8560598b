"""Reads the rules from registry/rules: one entry each, with examples that a test holds against the explainer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pydantic import ValidationError

from ....registry.folder import PACKAGED as OPERATORS
from ....registry.parsing import Block, parse, read_text
from ....registry.problems import Problem, error_of
from ....registry.validation import described
from .rule import ExplainingRule

PACKAGED = OPERATORS.parent / "rules"
# Of two rules that match a case, that of the earlier file explains it, or the earlier one of a file.
TOPICS = (
    *("no_kernel", "this_torch", "refused_dtypes", "rounding", "simulated", "no_reference", "not_executed"),
    *("own_kernels", "shipped_unspecified", "cpu_defects", "shipped_defects", "host_code", "graphs"),
)


@cache
def entries() -> Mapping[str, ExplainingRule]:
    """All rules by name, in order. Raises RegistryError that lists every problem with its place."""
    rules: dict[str, ExplainingRule] = {}
    problems: list[Problem] = []
    for topic in TOPICS:
        blocks, malformed = parse(read_text(path := PACKAGED / f"{topic}.yaml"), path)
        problems += malformed
        for block in blocks:
            if block.operator in rules:
                problems.append(block.problem((), "the name is taken already", at_key=True))
            entry = _entry_of(block)
            if isinstance(entry, ExplainingRule):
                rules[block.operator] = entry
            else:
                problems += entry
    if problems:
        raise error_of(problems)
    return rules


@cache
def all_rules() -> tuple[ExplainingRule, ...]:
    """All rules, in order. Raises RegistryError as `entries` does."""
    return tuple(entries().values())


def _entry_of(block: Block) -> ExplainingRule | list[Problem]:
    fields = block.data if isinstance(block.data, dict) else {}
    try:
        return ExplainingRule(**{**fields, "name": block.operator})  # type: ignore[arg-type]
    except ValidationError as error:
        return [block.problem(tuple(details["loc"]), described(details), at_key=True) for details in error.errors()]
