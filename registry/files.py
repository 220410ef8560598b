"""Loads and edits the registry: a folder of YAML files with one entry an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from ..errors import near
from .edits import with_entries
from .folder import PACKAGED, VARIABLE, file_name, registry_files, registry_folder
from .model import DEVICES, Device, Entry, Evidence, Status, data_of
from .parsing import Block, Plain, parse, read_text
from .problems import Problem, RegistryError, error_of, shown
from .validation import described, entries_of, entry_from, index_problems
from .writing import exclusive, writable_folder, write

HEADER = """\
# Operators of PyTorch and where they stand on mps. `mpsmith audit --sync` writes what stands under `measured`;
# everything else is written by people or on their word (`mpsmith registry set`). See docs/registry.md.

"""


@dataclass(frozen=True)
class Place:
    """The position of an entry; `line` counts from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{shown(self.path)}:{self.line}"


class Registry(Mapping[str, Entry]):
    """All entries by operator, in the order of the files. Iterates over operator names; `get` as of any mapping."""

    def __init__(self, folder: Path, texts: Mapping[Path, str], entries: Mapping[str, tuple[Entry, Block]]):
        self.folder = folder
        self._texts = texts
        self._entries = entries

    def __getitem__(self, operator: str) -> Entry:
        return self._entries[operator][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def texts(self) -> Mapping[Path, str]:
        """The text that was read from each file."""
        return MappingProxyType(dict(self._texts))

    def place(self, operator: str) -> Place:
        """The file and line of an entry. Raises KeyError for an operator without one."""
        block = self._entries[operator][1]
        return Place(block.path, block.key.start_mark.line + 1)

    def entries_of(self, path: Path) -> dict[str, Plain]:
        """The entries of one file, by operator."""
        return {name: block.data for name, (_, block) in self._entries.items() if block.path == path}

    def fields(self, operator: str) -> dict[str, Plain]:
        """The entry's fields as the file has them; empty for an operator without an entry."""
        if operator not in self._entries:
            return {}
        data = self._entries[operator][1].data
        return dict(data) if isinstance(data, dict) else {}

    def named(self, operator: str) -> Entry:
        """The entry of an operator, with or without the `aten::` before its name.

        Raises RegistryError with near names when there is none.
        """
        name = full_name(operator)
        if name in self:
            return self[name]
        raise RegistryError(f"{self.unknown(name)}")

    def unknown(self, operator: str) -> str:
        """A sentence that says that the operator has no entry, with similar names if there are any."""
        base = operator.split(".")[0]
        if base != operator and base in self:
            return f"{operator} is an overload; the registry has an entry for all overloads of {base}"
        # Compared without namespaces: the one that nearly all share would make any two names alike.
        bare = {name.rpartition("::")[2]: name for name in self}
        hint = near(operator.rpartition("::")[2], bare)
        return f"the registry in {shown(self.folder)} has no entry for {operator}{hint}"


def full_name(operator: str) -> str:
    """The name with its namespace: `mode` is `aten::mode`."""
    return operator if "::" in operator else f"aten::{operator}"


def load(folder: Path | None = None) -> Registry:
    """Read and validate the whole registry; about 0.2 s for all operators of a release.

    `folder`: by default the one in use (`folder.registry_folder`). An empty folder is an empty registry, and so is a
    package without one; a folder that is passed must exist.

    Raises RegistryError that lists every problem in every file with its line and column.
    """
    registry, problems = examine(folder)
    if problems:
        raise error_of(problems)
    return registry


def check(folder: Path | None = None) -> list[Problem]:
    """Every problem in the registry's files: none when `load` succeeds. Raises RegistryError for a missing folder."""
    return examine(folder)[1]


def examine(folder: Path | None = None) -> tuple[Registry, list[Problem]]:
    """The readable part of the registry and every problem in it, in the order of files and lines.

    Raises RegistryError for a missing folder.
    """
    chosen = registry_folder(folder)
    if not chosen.is_dir() and chosen != PACKAGED:
        raise RegistryError(
            f"there is no registry folder {shown(chosen)} ({VARIABLE}); `mpsmith audit --sync` makes one"
        )
    texts: dict[Path, str] = {}
    blocks: list[Block] = []
    problems: list[Problem] = [
        Problem(path, 1, 1, "registry files are named .yaml; this one would be overlooked: rename it")
        for path in (sorted(chosen.glob("*.yml")) if chosen.is_dir() else [])
    ]
    for path in _listed(chosen):
        try:
            texts[path] = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(_unreadable(path, error))
            continue
        file_blocks, malformed = parse(texts[path], path)
        blocks += file_blocks
        problems += malformed
    entries, invalid = entries_of(blocks)
    problems += invalid
    problems += index_problems(texts.values(), entries)
    return Registry(chosen, texts, entries), sorted(problems)


def edit(folder: Path | None, operator: str, changes: Mapping[str, object], *, add: bool = False) -> Entry:
    """Set fields of one entry and keep everything else in its file; None removes a field.

    `changes`: values by field; text, numbers, a `Status`, lists and mappings of them.
    `add`: make the entry where the operator has none.
    Returns the new entry. Raises RegistryError (nothing is written) when the operator has no entry and `add` is not
    given, when a value does not fit, when the registry has problems already, or when the disk refuses.
    """
    name = full_name(operator)
    return edit_all(folder, {name: changes}, add=add)[name]


def edit_all(
    folder: Path | None, changes: Mapping[str, Mapping[str, object]], *, add: bool = False
) -> dict[str, Entry]:
    """`edit` for several operators at once, by their full names: all of them or none."""
    chosen = writable_folder(folder)
    with exclusive(chosen):
        registry = load(chosen)
        for operator in changes:
            if operator not in registry and not add:
                raise RegistryError(f"{registry.unknown(operator)}; to make a new entry, ask for it (--add)")
        fields = {operator: merged_fields(registry.fields(operator), change) for operator, change in changes.items()}
        return replace_entries(registry, fields)


@dataclass(frozen=True)
class VerifiedKernel:
    """The result of verifying an operator's kernel: its family, the evidence, and the status that follows."""

    family: str
    evidence: Evidence
    status: Status


def record_evidence(folder: Path | None, device: Device, verified: Mapping[str, VerifiedKernel]) -> dict[str, Entry]:
    """Write the results of verifying kernels on `device`, by the operators' full names: all of them or none.

    Operators without an entry get one. Evidence from other devices is kept. Raises RegistryError as `edit` does.
    """
    chosen = writable_folder(folder)
    with exclusive(chosen):
        registry = load(chosen)
        fields = {}
        for operator, kernel in verified.items():
            old = registry.fields(operator)
            by_device = merged_devices(old.get("evidence"), {device: data_of(kernel.evidence)})
            changes = {"status": kernel.status, "kernel": kernel.family, "evidence": by_device}
            fields[operator] = merged_fields(old, changes)
        return replace_entries(registry, fields)


def replace_entries(registry: Registry, fields: Mapping[str, dict[str, Plain]]) -> dict[str, Entry]:
    """Write entries with exactly these fields into the registry's files, new ones into the file for their name.

    The caller holds the folder (`writing.exclusive`) since before `registry` was loaded. Files that would not change
    are not touched. Returns the new entries; raises RegistryError, and writes nothing, when one does not fit.
    """
    entries: dict[str, Entry] = {}
    by_file: dict[Path, dict[str, dict[str, Plain]]] = {}
    for operator, new in fields.items():
        if operator in registry and new == registry.fields(operator):
            entries[operator] = registry[operator]
            continue
        path = registry.place(operator).path if operator in registry else registry.folder / file_name(operator)
        by_file.setdefault(path, {})[operator] = new
        entries[operator] = _valid(operator, new)
    after = {path: _edited(registry, path, new) for path, new in sorted(by_file.items())}
    before = {path: registry.texts.get(path) for path in after}
    write(registry.folder, before, after)
    return entries


def _edited(registry: Registry, path: Path, fields: Mapping[str, dict[str, Plain]]) -> str:
    """The new text of a file. Parses it again to check that only these entries have changed, with these fields."""
    text = registry.texts.get(path)
    new = with_entries(HEADER if text is None else text, fields)
    blocks, problems = parse(new, path)
    expected = {**registry.entries_of(path), **fields}
    if problems or {block.operator: block.data for block in blocks} != expected:
        listed = ", ".join(fields)
        raise RegistryError(
            f"cannot edit {listed} in {shown(path)} in place: write the entry in plain block style first"
        )
    return new


def merged_fields(fields: dict[str, Plain], changes: Mapping[str, object]) -> dict[str, Plain]:
    """An entry's fields after changes, in the model's order, unknown ones last. A change to None removes the field."""
    order = list(Entry.model_fields)
    merged = {name: value for name, value in {**fields, **_plain_mapping(changes)}.items() if value is not None}
    return dict(sorted(merged.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def merged_devices(by_device: Plain, new: Mapping[Device, dict[str, Plain]]) -> dict[str, Plain]:
    """`measured` or `evidence` with the parts of some devices replaced, in the order of `model.DEVICES`."""
    recorded = by_device if isinstance(by_device, dict) else {}
    merged = {device: new.get(device) or recorded.get(device) for device in DEVICES}
    return {device: part for device, part in merged.items() if part}


def _plain_mapping(values: Mapping[str, object]) -> dict[str, Plain]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: object) -> Plain:
    """A value in the form that the files hold: text, and lists and mappings of text."""
    if value is None:
        return None
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else str(value)


def _valid(operator: str, fields: dict[str, Plain]) -> Entry:
    entry_or_error = entry_from(operator, fields)
    if isinstance(entry_or_error, ValidationError):
        wrong: Sequence[str] = [described(details) for details in entry_or_error.errors()]
        raise RegistryError(f"{operator}: {'; '.join(wrong)}")
    return entry_or_error


def _listed(folder: Path) -> list[Path]:
    try:
        return registry_files(folder)
    except OSError as error:
        raise RegistryError(f"cannot read the registry folder {shown(folder)}: {error.strerror or error}") from error


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return Problem(path, line, 1, "not UTF-8 text")
    return Problem(path, 1, 1, f"cannot be read: {error.strerror or error}")
