"""The operators that a call of torch consists of, as committed data: `compositions.tsv`.

A line has the name of an overload or of a public function or module, the number of calls that were observed, and the
overloads with a kernel that ran inside them. A part that only some calls reach has their number behind it:
`linalg_norm  12  linalg_vector_norm _linalg_svd.U:2`. `recording` writes the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import MpsmithError

FILE = Path(__file__).parent / "compositions.tsv"
_TITLES = ("name", "calls", "parts")

_NOT_COMPUTING = {"_reshape_alias", "_to_copy", "alias", "as_strided", "clone", "copy", "expand", "permute", "view"}
_NOT_COMPUTING |= {"slice", "empty", "empty_like", "empty_strided", "fill", "resize", "set", "zero"}


@dataclass(frozen=True)
class Composition:
    """The parts of the observed calls of one name.

    Attributes:
        calls: how many calls were observed.
        parts: for each overload (without namespace) that ran inside, how many of the calls reached it.
    """

    calls: int
    parts: Mapping[str, int]

    @classmethod
    def parsed(cls, calls: str, parts: str) -> Composition:
        """The composition from a number of calls, and parts as `_linalg_svd.U:2`. Raises ValueError."""
        reached = (part.partition(":") for part in parts.split())
        return cls(int(calls), {overload: int(count or calls) for overload, _, count in reached})

    @classmethod
    def sum(cls, compositions: Iterable[Composition]) -> Composition:
        """The calls of all of them together."""
        calls, parts = 0, Counter[str]()
        for composition in compositions:
            calls += composition.calls
            parts.update(composition.parts)
        return cls(calls, parts)

    def __str__(self) -> str:
        """The parts, the most frequent first."""
        ordered = sorted(self.parts.items(), key=lambda item: (-item[1], item[0]))
        return " ".join(part if reached == self.calls else f"{part}:{reached}" for part, reached in ordered)

    def share(self, part: str) -> float:
        """The share of the calls that reached a part, from 0 to 1."""
        return self.parts.get(part, 0) / self.calls if self.calls else 0.0

    @property
    def computing_parts(self) -> list[str]:
        """The overloads that compute: not those that only allocate, view, copy or fill."""
        return [part for part in self.parts if part.split(".")[0].rstrip("_") not in _NOT_COMPUTING]

    @property
    def is_one_operator(self) -> bool:
        """Whether each call computes with at most one overload, as `prelu` does with `_prelu_kernel`."""
        return sum(self.parts[part] for part in self.computing_parts) <= self.calls


NO_PARTS = Composition(0, {})


@cache
def compositions(path: Path = FILE) -> Mapping[str, Composition]:
    """The compositions by name. Raises MpsmithError with file and line for a malformed line."""
    return dict(_parsed(path, number, line) for number, line in _lines(path))


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    return list(enumerate(path.read_text("utf-8").splitlines(), start=1))[1:]


def _parsed(path: Path, number: int, line: str) -> tuple[str, Composition]:
    try:
        name, calls, parts = line.split("\t")
        return name, Composition.parsed(calls, parts)
    except ValueError:
        raise MpsmithError(f"{path}:{number}: not a name, a number of calls and parts") from None


def write(compositions_by_name: Mapping[str, Composition], path: Path = FILE) -> None:
    """Write the file in the order of names, so that a new recording changes only the lines that differ."""
    lines = ["\t".join(_TITLES)]
    lines += [f"{name}\t{composed.calls}\t{composed}" for name, composed in sorted(compositions_by_name.items())]
    path.write_text("\n".join(lines) + "\n", "utf-8")
