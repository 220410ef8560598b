"""Where the registry's files are, and which of them holds an operator. Imports only the standard library.

In a clone, the registry in use is that of the repository. An installed mpsmith has one among its code, which is only
read. What is written goes to a copy in the current folder, which is the registry in use there from then on.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..cache import is_checkout

PACKAGED = Path(__file__).parent / "operators"
VARIABLE = "MPSMITH_REGISTRY"
# The copy of an installed mpsmith's registry, in the folder where someone works.
LOCAL = Path("mpsmith-registry")

# Name prefixes that have a file of their own; without them the files of their letters would be twice as long.
FAMILIES = ("fft", "foreach", "linalg", "nested", "sparse", "special", "upsample")


def registry_folder(chosen: Path | None = None) -> Path:
    """The folder in use: the one chosen, else that of the variable MPSMITH_REGISTRY, else the package's own.

    If mpsmith is an installed package, a copy in the current folder (`writing.writable_folder`) takes
    precedence over the package's own.
    """
    asked_for = folder_asked_for(chosen)
    if asked_for is not None:
        return asked_for
    return LOCAL if not is_checkout() and LOCAL.is_dir() else PACKAGED


def written_folder() -> Path:
    """The folder that a change goes to: the one in use, but a copy of the files of an installed package."""
    folder = registry_folder()
    return LOCAL if folder == PACKAGED and not is_checkout() else folder


def folder_asked_for(chosen: Path | None) -> Path | None:
    """The folder chosen, else that of the variable MPSMITH_REGISTRY, else None."""
    if chosen is not None:
        return chosen
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def registry_files(folder: Path) -> list[Path]:
    """The registry's files in a fixed order; none if the folder does not exist.

    Raises OSError when the folder cannot be listed.
    """
    return sorted(path for path in folder.iterdir() if path.suffix == ".yaml") if folder.exists() else []


def file_name(operator: str) -> str:
    """The file that a new entry goes to. An entry in another file stays there: people may move entries."""
    return f"{shard_of(operator)}.yaml"


def shard_of(operator: str) -> str:
    """The name of an operator's file: its namespace if that is not aten, else its family, else its first letter."""
    namespace, _, name = operator.partition("::")
    if namespace != "aten":
        return namespace
    bare = name.strip("_").lower()
    family = bare.split("_")[0]
    return family if family in FAMILIES else bare[:1] or "other"
