"""The manifest of a scaffold, `.mpsmith.json`.

A later run compares with it to find edited files; `mpsmith check` reads from it how to compile and what must register.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .errors import ScaffoldError

NAME = ".mpsmith.json"


@dataclass(frozen=True)
class Manifest:
    """One scaffold.

    Attributes:
        operator: `aten::mode`.
        target: `shader`, `extension` or `upstream`.
        kind: the kind of kernel.
        torch: the release whose schemas were used.
        registers: the overloads of aten that the compiled code must register, with the dispatch key.
        include: folders, relative to the manifest, that are searched for headers before all others.
        definitions: preprocessor definitions that the build makes.
        arc: whether the Objective-C++ is compiled with automatic reference counting.
        files: the digest of each generated file as it was generated, by its path relative to the manifest.
        texts: each of them as it was generated: the common ancestor when a newer one is merged with an edited one.
    """

    operator: str
    target: str
    kind: str
    torch: str
    registers: dict[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    arc: bool = True
    files: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(asdict(self), indent=1) + "\n"


def digest_of(text: str) -> str:
    """The digest of a generated text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_manifest(path: Path) -> Manifest | None:
    """The manifest in a file; None when there is none. Raises ScaffoldError when it is damaged."""
    try:
        data: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
        lists = {name: tuple(data[name]) for name in ("include", "definitions")}
        return Manifest(**{**data, **lists})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        raise ScaffoldError(f"{path} is damaged; remove it and scaffold again with --force") from None


def manifest_above(path: Path) -> tuple[Path, Manifest] | None:
    """The nearest manifest in the folder of `path` or above it, with its folder."""
    start = path.resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        manifest = read_manifest(folder / NAME)
        if manifest:
            return folder, manifest
    return None
