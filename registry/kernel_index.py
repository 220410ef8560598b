"""Finds the operators that have a replacement kernel in a few milliseconds, for `import mpsmith.kernels`.

It scans lines instead of parsing YAML. `registry.files.load` refuses an entry whose kernel the scan would misread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .folder import PACKAGED, folder_asked_for, registry_files
from .problems import RegistryError, shown


@dataclass(frozen=True)
class KernelEntry:
    """An operator that has a kernel: its name, the module in `mpsmith.kernels`, and the status that people gave."""

    operator: str
    kernel: str
    status: str | None


_LINE = re.compile(
    r"^(?:(?P<operator>\w+::\w+):|  kernel: +(?P<kernel>\w+)|  status: +(?P<status>[a-z]+(?: [a-z]+)*))"
    r"[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)


def kernel_entries(folder: Path | None = None) -> dict[str, KernelEntry]:
    """The operators that have a kernel, by name.

    `folder`: by default that of the variable MPSMITH_REGISTRY, else the package's own: what `import mpsmith.kernels`
    registers does not depend on the current folder.

    Raises RegistryError when a file cannot be read; what is written in the files is not validated here.
    """
    chosen = folder_asked_for(folder) or PACKAGED
    try:
        texts = [path.read_text(encoding="utf-8") for path in registry_files(chosen)]
    except (OSError, UnicodeDecodeError) as error:
        raise RegistryError(f"cannot read the registry in {shown(chosen)}: {error}") from error
    return {entry.operator: entry for text in texts for entry in scan(text)}


def scan(text: str) -> list[KernelEntry]:
    """The entries with a kernel in the text of one file."""
    if "\n  kernel:" not in text:
        return []
    entries: list[KernelEntry] = []
    operator = kernel = status = None
    for match in _LINE.finditer(text):
        if match["operator"]:
            entries += _finished(operator, kernel, status)
            operator, kernel, status = match["operator"], None, None
        kernel = match["kernel"] or kernel
        status = match["status"] or status
    return entries + _finished(operator, kernel, status)


def _finished(operator: str | None, kernel: str | None, status: str | None) -> list[KernelEntry]:
    return [KernelEntry(operator, kernel, status)] if operator and kernel else []
