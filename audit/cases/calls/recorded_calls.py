"""The recorded calls of every overload that the CPU accepts, or the errors if none was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ....errors import MpsmithError
from . import recorded_files

# The recorded calls of this repository.
FOLDER = Path(__file__).with_name("recorded")

# With so many different calls an overload needs no further search.
ENOUGH = 3


@dataclass
class OverloadCalls:
    """One overload.

    Attributes:
        calls: accepted calls, each {"args": [...], "kwargs": {...}, "dtype": name of the dtype that may be replaced}.
        dtypes: dtypes which the CPU accepts in place of the calls' own.
        left_out: by dtype, the positions of calls that are not to be made with it: the CPU refuses them, or their
            result is undefined.
        refused: the CPU has no kernel, so these calls show only that the device has one or none.
        schema: the fingerprint of the schema with which the calls were recorded.
        tried: how many calls were tried where none or too few were accepted.
        errors: the CPU's error messages then, the most frequent first.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    left_out: dict[str, list[int]] = field(default_factory=dict)
    refused: bool = False
    schema: str = ""
    tried: int = 0
    errors: list[str] = field(default_factory=list)

    def accepted(self, dtype: str) -> list[dict[str, Any]]:
        """The recorded calls that the CPU accepts in a dtype, in their order."""
        without = self.left_out.get(dtype, ())
        return [call for position, call in enumerate(self.calls) if position not in without]

    @property
    def enough(self) -> bool:
        """Whether enough different calls are accepted. An overload without arguments has only one."""
        if self.refused:
            return False
        return len(self.calls) >= ENOUGH or any(not call["args"] and not call["kwargs"] for call in self.calls)


@dataclass
class RecordedCalls:
    """All overloads of one torch release by name ("aten::mode.values")."""

    torch: str
    overloads: dict[str, OverloadCalls]

    @classmethod
    def load(cls, folder: Path = FOLDER) -> RecordedCalls:
        """Read a memory, by default the committed one. Raises MpsmithError when it is damaged."""
        try:
            release, overloads = recorded_files.read(folder)
            return cls(release, {name: OverloadCalls(**fields) for name, fields in overloads.items()})
        except FileNotFoundError:
            return cls("", {})
        except (OSError, ValueError, TypeError) as error:
            raise MpsmithError(
                f"{folder}: damaged ({error}); `python -m mpsmith.audit.cases.argument_search` writes it again"
            ) from error

    def save(self, folder: Path = FOLDER) -> None:
        """Write what has changed of the memory. Raises MpsmithError if it cannot be written."""
        try:
            recorded_files.write(folder, self.torch, {name: _plain(r) for name, r in self.overloads.items()})
        except OSError as error:
            raise MpsmithError(f"{folder}: {error.strerror} (choose a writable folder with --to)") from error

    def fitting(self, fingerprint: Callable[[str], str]) -> RecordedCalls:
        """The overloads that the installed torch has with the same schema as when they were recorded.

        Args:
            fingerprint: of an overload's schema in the installed torch; raises AttributeError if it has none.
        """
        return RecordedCalls(self.torch, {n: r for n, r in self.overloads.items() if _fits(n, r, fingerprint)})


def _fits(name: str, recorded: OverloadCalls, fingerprint: Callable[[str], str]) -> bool:
    try:
        return fingerprint(name) == recorded.schema
    except (AttributeError, RuntimeError):
        return False


def _plain(recorded: OverloadCalls) -> dict[str, Any]:
    """The fields that are not empty."""
    return {name: value for name, value in asdict(recorded).items() if value}
