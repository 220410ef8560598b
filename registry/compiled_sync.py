"""Writes the results of an audit under torch.compile into the registry: the field `compiled` of a measurement.

It extends the measurement of eager calls with the same release on the same device. An operator without one is not
changed. Dtypes that were not compiled this time keep their results.
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
    """The result of a sync; operators by name.

    Attributes:
        changed: operators whose entries changed.
        unchanged: operators whose entries did not change.
        unmeasured: skipped, because their eager calls were not measured with this release on this device.
    """

    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    unmeasured: tuple[str, ...]


def sync_compiled(
    folder: Path | None, device: Device, torch: str, profile: str | None, compiled: Mapping[str, CompiledDtypes]
) -> CompiledSyncReport:
    """Write the verdicts of compiled calls into the registry.

    Args:
        folder: as for `registry.files.load`.
        device, torch, profile: what was measured, as in `registry.sync.Measurement`.
        compiled: for each operator ("aten::mode") the dtypes of each compiled verdict.

    Raises RegistryError (nothing is written) when the registry has problems, a verdict is unknown, or the disk refuses.
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
            [*compiled.get(word, ()), *(dtype for dtype in recorded.compiled.get(word, ()) if dtype not in executed)]
        )
        for word in (*get_args(CompiledWord), *(word for word in compiled if word not in get_args(CompiledWord)))
    }
    plain = {**recorded.model_dump(), "compiled": {word: names for word, names in together.items() if names}}
    try:
        return Measured.model_validate(plain)
    except ValidationError as error:
        wrong = "; ".join(described(details) for details in error.errors())
        raise RegistryError(f"the compiled verdicts of {operator} are malformed: {wrong}") from error
