"""Brings what an audit under torch.compile measured into the registry: the field `compiled` of a measurement.

It stands beside what the calls showed as they are, for the same release on the same device: an operator without such a
measurement is left alone. Dtypes that were not compiled this time keep what they showed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from .files import load, merged_devices, merged_fields, replace_entries
from .model import CompiledWord, Device, Measured, data_of, in_dtype_order
from .problems import RegistryError
from .torch_release import public_version
from .validation import described
from .writing import exclusive, writable_folder

CompiledDtypes = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CompiledSyncReport:
    """What a sync did, operators in the order of their names.

    Attributes:
        changed: whose entry says something else now.
        unchanged: whose entry said the same.
        unmeasured: left alone, because their calls as they are were not measured with this release on this device.
    """

    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    unmeasured: tuple[str, ...]


def sync_compiled(
    folder: Path | None, device: Device, torch: str, profile: str | None, compiled: Mapping[str, CompiledDtypes]
) -> CompiledSyncReport:
    """Write what became of compiled calls into the registry.

    Args:
        folder: as for `registry.files.load`.
        device, torch, profile: what was measured, as in `registry.sync.Measurement`.
        compiled: for each operator ("aten::mode") the dtypes of each compiled verdict.

    Raises RegistryError (nothing is written) when the registry has problems, a verdict is none, or the disk refuses.
    """
    release = public_version(torch)
    coverage = public_version(profile) if profile and public_version(profile) != release else None
    chosen = writable_folder(folder)
    changed, unchanged, unmeasured, fields = [], [], [], {}
    with exclusive(chosen):
        registry = load(chosen)
        for operator in sorted(compiled):
            entry = registry.get(operator)
            recorded = entry.measured.get(device) if entry else None
            if recorded is None or (recorded.torch, recorded.profile) != (release, coverage):
                unmeasured.append(operator)
                continue
            new = _with_compiled(operator, recorded, compiled[operator])
            if new == recorded:
                unchanged.append(operator)
                continue
            changed.append(operator)
            before = registry.fields(operator)
            parts = merged_devices(before.get("measured"), {device: data_of(new)})
            fields[operator] = merged_fields(before, {"measured": parts})
        replace_entries(registry, fields)
    return CompiledSyncReport(tuple(changed), tuple(unchanged), tuple(unmeasured))


def _with_compiled(operator: str, recorded: Measured, compiled: CompiledDtypes) -> Measured:
    executed = {dtype for dtypes in compiled.values() for dtype in dtypes}
    together = {
        word: in_dtype_order(
            [*compiled.get(word, ()), *(each for each in recorded.compiled.get(word, ()) if each not in executed)]
        )
        for word in (*get_args(CompiledWord), *(word for word in compiled if word not in get_args(CompiledWord)))
    }
    plain = {**recorded.model_dump(), "compiled": {word: names for word, names in together.items() if names}}
    try:
        return Measured.model_validate(plain)
    except ValidationError as error:
        wrong = "; ".join(described(details) for details in error.errors())
        raise RegistryError(f"what became of {operator} compiled is malformed: {wrong}") from error
