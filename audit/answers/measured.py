"""The newest whole audit's results for each name that a user can call, as committed data: `measured.tsv`.

A line has the name of an overload, function or module; the dtypes by verdict; the grade; the label and the message of
a case that did not pass; and, if some kernel was missing, the number of calls and the overloads without a kernel, as in
`compositions.tsv`. A verdict with `~` is that of fewer than half of the cases: `passed=float32 wrong~=float32`. With
`~~` it is that of some sizes alone, of many elements or dimensions.
Cases of which some tensor is empty do not count, nor those that the CPU refuses: a dtype without other cases is absent.
`measuring` writes the file, and `host_work.tsv` from an audit with host code: the overloads that wait for the GPU, or
compute on the CPU inside, with their calls and waits, and in which calls they do, which people may edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import MpsmithError
from ..model.verdicts import CaseVerdict, Grade
from .compositions import NO_PARTS, Composition

FILE = Path(__file__).parent / "measured.tsv"
HOST_WORK = FILE.with_name("host_work.tsv")
_TITLES = ("name", "dtypes", "grade", "case", "message", "calls", "without a kernel")
_SOME = "~"
_SIZES = "dtype-gap~~"
_ABSENT = "-"


@dataclass(frozen=True)
class MeasuredCalls:
    """The cases of one name.

    Attributes:
        prevailing: the dtypes by the verdict of at least half of their cases.
        some: the dtypes in which fewer than half of the cases had a verdict, by that verdict; passed only where most
            are refused or wrong.
        grade: what computed the results, the strongest.
        case: the label of a case that did not pass, or "".
        message: what that case showed, or "".
        without_kernel: the overloads that the device named as without a kernel, and how many of the calls reached each.
        at_sizes: the dtypes in which calls were refused for their size alone.
    """

    prevailing: Mapping[CaseVerdict, tuple[str, ...]]
    some: Mapping[CaseVerdict, tuple[str, ...]]
    grade: Grade
    case: str = ""
    message: str = ""
    without_kernel: Composition = NO_PARTS
    at_sizes: tuple[str, ...] = ()

    @property
    def dtypes(self) -> Mapping[str, CaseVerdict]:
        """The prevailing verdict of each dtype."""
        return {dtype: verdict for verdict, dtypes in self.prevailing.items() for dtype in dtypes}


@dataclass(frozen=True)
class MeasuredNames:
    """All names, and the release of torch whose coverage and kernels the audit had.

    `simulated`: the device was the simulated one.
    """

    release: str
    simulated: bool
    names: Mapping[str, MeasuredCalls]


@cache
def measured(path: Path = FILE) -> MeasuredNames:
    """The committed data. Raises MpsmithError with file and line for a malformed line."""
    head, _, *lines = path.read_text("utf-8").splitlines()
    release, _, device = head.removeprefix("# torch ").partition(", ")
    names = {}
    for number, line in enumerate(lines, start=3):
        try:
            name, dtypes, grade, *rest = line.split("\t")
            case, message = ("" if text == _ABSENT else text for text in rest[:2])
            calls, lacking = rest[2:] or ("0", "")
            without_kernel = Composition.parsed(calls, lacking)
            prevailing, some, at_sizes = _parsed(dtypes)
            names[name] = MeasuredCalls(prevailing, some, Grade(grade), case, message, without_kernel, at_sizes)
        except ValueError as error:
            raise MpsmithError(f"{path}:{number}: {error}") from None
    return MeasuredNames(release, device == "simulated", names)


def _parsed(
    text: str,
) -> tuple[Mapping[CaseVerdict, tuple[str, ...]], Mapping[CaseVerdict, tuple[str, ...]], tuple[str, ...]]:
    prevailing: dict[CaseVerdict, tuple[str, ...]] = {}
    some: dict[CaseVerdict, tuple[str, ...]] = {}
    at_sizes: tuple[str, ...] = ()
    for part in text.split():
        word, _, dtypes = part.partition("=")
        if word == _SIZES:
            at_sizes = tuple(dtypes.split(","))
            continue
        verdict = CaseVerdict(word.removesuffix(_SOME).replace("-", " "))
        (some if word.endswith(_SOME) else prevailing)[verdict] = tuple(dtypes.split(","))
    return prevailing, some, at_sizes


def write(data: MeasuredNames, path: Path = FILE) -> None:
    """Write the file in the order of names, so that a new audit changes only the lines that differ."""
    lines = [f"# torch {data.release}, {'simulated' if data.simulated else 'real'}", "\t".join(_TITLES)]
    for name, calls in sorted(data.names.items()):
        parts = [
            f"{verdict.value.replace(' ', '-')}={','.join(dtypes)}" for verdict, dtypes in calls.prevailing.items()
        ]
        parts += [
            f"{verdict.value.replace(' ', '-')}{_SOME}={','.join(dtypes)}" for verdict, dtypes in calls.some.items()
        ]
        parts += [f"{_SIZES}={','.join(calls.at_sizes)}"] if calls.at_sizes else []
        lacking = calls.without_kernel
        row = [name, " ".join(parts), calls.grade.value, calls.case or _ABSENT, calls.message or _ABSENT]
        lines.append("\t".join([*row, str(lacking.calls), str(lacking)] if lacking.parts else row))
    path.write_text("\n".join(lines) + "\n", "utf-8")


@dataclass(frozen=True)
class HostFact:
    """An overload's waits and work on the CPU; `when`: `in every call` or `where ...`, empty tensors aside."""

    release: str
    overload: str
    calls: str
    waits: str
    on_cpu: str
    when: str

    @property
    def in_every_call(self) -> bool:
        """Whether each call does it, but those of empty tensors."""
        return self.when.startswith("in every call")

    def __str__(self) -> str:
        inside = f"native, but on the CPU inside ({self.on_cpu})" if self.on_cpu else "waits for the GPU"
        return f"{self.overload}: {inside} {self.when} (SIMULATED)"


@cache
def host_facts(release: str, path: Path = HOST_WORK) -> Mapping[str, HostFact]:
    """The facts about the host code of a release such as 2.13.0+cpu, by overload; empty if it was not audited."""
    rows = (HostFact(*line.split("\t")) for line in path.read_text("utf-8").splitlines())
    return {fact.overload: fact for fact in rows if fact.release == release.split("+")[0]}
