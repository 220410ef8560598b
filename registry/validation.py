"""Turns the blocks of registry files into entries, and describes what is wrong with invalid ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..errors import near
from . import kernel_index
from .model import Entry, Evidence, Measured
from .parsing import Block, Plain
from .problems import Problem, shown

_WHAT_FITS = {
    "operator": "an operator is written 'namespace::name', such as 'aten::mode'",
    "overloads": "an overload is written 'aten::mode' or 'aten::mode.values'",
    "torch": "a release is written like '2.13.0'",
    "profile": "a release is written like '2.13.0'",
    "issue": "an issue is a number in pytorch/pytorch or a URL",
    "pull_request": "a pull request is a number in pytorch/pytorch or a URL",
    "kernel": "a kernel is the name of a module in mpsmith.kernels, such as 'mode'",
    "source": "the digest of the kernel's sources is 8 to 64 hexadecimal digits",
}

_EXPECTED = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def entry_of(block: Block) -> Entry | list[Problem]:
    """The entry that a block describes, or everything that is wrong with it."""
    if block.data is None:
        return [block.problem((), "the entry is empty: give it a field or remove it", at_key=True)]
    if not isinstance(block.data, dict):
        return [block.problem((), "an entry is a mapping of fields, such as 'status: missing'")]
    if "operator" in block.data:
        return [block.problem(("operator",), "the entry's key names the operator: remove this field", at_key=True)]
    entry_or_error = entry_from(block.operator, block.data)
    if isinstance(entry_or_error, Entry):
        return entry_or_error
    return [_located(block, details) for details in entry_or_error.errors()]


def entry_from(operator: str, data: dict[str, Plain]) -> Entry | ValidationError:
    """The entry of `operator` with these fields, or pydantic's account of what is wrong with them."""
    try:
        return Entry.model_validate({"operator": operator, **data})
    except ValidationError as error:
        return error


def entries_of(blocks: Sequence[Block]) -> tuple[dict[str, tuple[Entry, Block]], list[Problem]]:
    """All valid entries by operator, in the order of the files, and everything that is wrong with the invalid ones."""
    entries: dict[str, tuple[Entry, Block]] = {}
    places: dict[str, Block] = {}
    problems: list[Problem] = []
    for block in blocks:
        earlier = places.setdefault(block.operator, block)
        if earlier is not block:
            place = f"{shown(earlier.path)}:{earlier.key.start_mark.line + 1}"
            problems.append(block.problem((), f"the operator has an entry already, at {place}", at_key=True))
            continue
        entry_or_problems = entry_of(block)
        if isinstance(entry_or_problems, Entry):
            entries[block.operator] = (entry_or_problems, block)
        else:
            problems.extend(entry_or_problems)
    return entries, problems


def index_problems(texts: Iterable[str], entries: Mapping[str, tuple[Entry, Block]]) -> list[Problem]:
    """Entries whose kernel the quick scan for `mpsmith.kernels` would miss, misread or assign to a different entry."""
    seen = {entry.operator: entry for text in texts for entry in kernel_index.scan(text)}
    meant = {
        operator: kernel_index.KernelEntry(operator, entry.kernel, entry.status.value if entry.status else None)
        for operator, (entry, _) in entries.items()
        if entry.kernel is not None
    }
    message = (
        "an entry with a kernel is written plainly: no quotes, `kernel` and `status` on lines of their own, indented "
        "by two spaces (`import mpsmith.kernels` reads them without a YAML parser)"
    )
    return [
        entries[operator][1].problem((), message, at_key=True)
        for operator in entries
        if seen.get(operator) != meant.get(operator)
    ]


def described(details: ErrorDetails) -> str:
    """One of pydantic's errors, reworded for a person who edits the file."""
    location = details["loc"]
    name = str(location[-1]) if location and isinstance(location[-1], str) else ""
    field = name if name != "[key]" else "key"
    value = details["input"]
    match details["type"]:
        case "extra_forbidden":
            return f"unknown key '{name}'{near(name, _keys_at(location[:-1]))}"
        case "missing":
            return f"the key '{name}' is missing"
        case "enum" | "literal_error":
            allowed = _allowed(details)
            what = "key" if field == "key" else f"value of {_field_at(location)}"
            return f"'{value}' is not a {what}; allowed are {', '.join(allowed)}{near(str(value), allowed)}"
        case "string_pattern_mismatch":
            fits = _WHAT_FITS.get(_field_at(location))
            return f"'{value}' does not fit: {fits}" if fits else f"'{value}' does not fit {_field_at(location)}"
        case "value_error":
            return str(details["ctx"]["error"])
        case "too_short":
            return f"{_field_at(location)} is empty"
        case kind if kind in _EXPECTED:
            return f"{_field_at(location)} must be {_EXPECTED[kind]}, not {_kind_of(value)}"
        case _:
            return f"{_field_at(location)}: {details['msg']}"


def _located(block: Block, details: ErrorDetails) -> Problem:
    location = details["loc"]
    message = described(details)
    if location == ("operator",):
        return block.problem((), message + _overload_hint(block.operator), at_key=True)
    if location and location[-1] == "[key]":
        return block.problem(location[:-1], message, at_key=True)
    # What is missing, and what holds of several fields, is shown at the key of the mapping that lacks it.
    at_key = details["type"] in ("extra_forbidden", "missing", "value_error")
    return block.problem(location, message, at_key=at_key)


def _overload_hint(operator: str) -> str:
    namespace, _, name = operator.partition("::")
    base = name.split(".")[0]
    return f"; an entry is for all overloads: '{namespace}::{base}'" if "." in name and base else ""


def _field_at(location: Sequence[int | str]) -> str:
    """The nearest name in `location` that is a field of the model, not a key or an index of a collection."""
    names = [step for step in location if isinstance(step, str)]
    model_names = {field for model in (Entry, Measured, Evidence) for field in model.model_fields}
    return next((name for name in reversed(names) if name in model_names), names[-1] if names else "the entry")


def _keys_at(location: Sequence[int | str]) -> list[str]:
    """The keys that the model has at this location."""
    models: dict[str, type[BaseModel]] = {"measured": Measured, "evidence": Evidence}
    model = models.get(str(location[0]), Entry) if location else Entry
    return [name for name in model.model_fields if name != "operator"]


def _allowed(details: ErrorDetails) -> list[str]:
    """The allowed words in a message of pydantic, "'a', 'b' or 'c'"."""
    expected: Any = details.get("ctx", {}).get("expected", "")
    return [word.strip().strip("'") for word in str(expected).replace(" or ", ", ").split(",")]


def _kind_of(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "text"
