"""What is remembered of every overload: calls that the CPU accepts, and where none was found, what was tried."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import MpsmithError

FILE = Path(__file__).with_name("memory.json.gz")


@dataclass
class Remembered:
    """One overload.

    Attributes:
        calls: accepted calls, each {"args": [...], "kwargs": {...}, "dtype": name of the dtype that may be replaced}.
        dtypes: dtypes which the CPU accepts in place of the calls' own.
        tried: how many calls were tried where none or too few were accepted.
        errors: the CPU's error messages then, the most frequent first.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    tried: int = 0
    errors: list[str] = field(default_factory=list)


@dataclass
class Memory:
    """All overloads of one torch release by name ("aten::mode.values")."""

    torch: str
    overloads: dict[str, Remembered]

    @classmethod
    def load(cls, path: Path = FILE) -> Memory:
        """Read the committed memory. Raises MpsmithError when it is damaged."""
        try:
            data = json.loads(gzip.decompress(path.read_bytes()))
            overloads = {name: Remembered(**fields) for name, fields in data["overloads"].items()}
            return cls(data["torch"], overloads)
        except FileNotFoundError:
            return cls("", {})
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise MpsmithError(f"{path}: damaged ({error}); make it anew with `mpsmith learn`") from error

    def save(self, path: Path = FILE) -> None:
        """Write the memory; the same content gives the same bytes."""
        overloads = {name: vars(self.overloads[name]) for name in sorted(self.overloads)}
        text = json.dumps({"torch": self.torch, "overloads": overloads}, separators=(",", ":"), sort_keys=True)
        temporary = path.with_suffix(".new")
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
        temporary.replace(path)
