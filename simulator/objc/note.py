"""Metadata inside a built extension, such as its torch version; read before the extension is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .host_libraries import IMAGE, TENSOR_MEMORY, torch_host_library

_MARK = "mpsmith extension: "
_FOUND = re.compile(re.escape(_MARK.encode()) + rb"(\{.*?\})\0")


@dataclass(frozen=True)
class ExtensionNote:
    """`host` changes with the libraries of the simulated host."""

    name: str
    torch: str
    host: str


def current(name: str) -> ExtensionNote:
    """The note of an extension that is built now."""
    import torch

    return ExtensionNote(name, str(torch.__version__), torch_host_library().parent.name)


def write(folder: Path, name: str, included: Sequence[Path] = (IMAGE, TENSOR_MEMORY)) -> Path:
    """Write a C++ file that contains the note and these sources, which register the extension's Objective-C classes."""
    path = folder / "note.cpp"
    text = json.dumps(_MARK + json.dumps(asdict(current(name))))
    noted = f'extern "C" __attribute__((used)) const char mpsmith_extension_note[] = {text};\n'
    path.write_text("".join(f'#include "{source}"\n' for source in included) + noted)
    return path


def read(library: Path) -> ExtensionNote | None:
    """The note in a library; None if it was not built here."""
    match = _FOUND.search(library.read_bytes())
    if match is None:
        return None
    data = json.loads(match[1])
    return ExtensionNote(data["name"], data["torch"], data["host"])
