"""What became of upstream's own files: which were compiled here, which kernels that they register ran, which right.

From the notes of `mpsmith upstream build` and the store of an audit that ran them. An overload ran where some case
launched kernels of upstream's and nothing fell back; it is right where most of its cases pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..audit.findings.results import AuditSummary, OverloadSummary
from ..audit.model.verdicts import Grade
from ..simulator.upstream.building import BuiltFile


@dataclass(frozen=True)
class FileStanding:
    """One file of a checkout.

    Attributes:
        name: the file's name without suffix.
        overloads: those that it registers, without namespace.
        built: whether there is a library of it.
        closed: whether it was not tried, since it needs what is Apple's and closed.
        ran, right: those of the overloads that ran, and of these the right ones.
        problems: why it is not built; of each overload that is not right, what the audit says.
    """

    name: str
    overloads: tuple[str, ...]
    built: bool
    closed: bool
    ran: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def standings(files: Iterable[BuiltFile], summary: AuditSummary) -> list[FileStanding]:
    """A row for each file. `summary`: of the audit that ran the build."""
    found = {overload.name.removeprefix("aten::"): overload for overload in summary.overloads}
    return [_standing(file, found) for file in files]


def _standing(file: BuiltFile, found: dict[str, OverloadSummary]) -> FileStanding:
    if not file.built:
        return FileStanding(file.name, file.overloads, built=False, closed=file.closed, problems=(file.problem,))
    ran = tuple(name for name in file.overloads if name in found and found[name].grade is Grade.UPSTREAM_SOURCE)
    right = tuple(name for name in ran if found[name].verdict.is_support)
    problems = tuple(f"{name}: {_why(found.get(name), ran)}" for name in file.overloads if name not in right)
    return FileStanding(file.name, file.overloads, True, False, ran, right, problems)


def _why(overload: OverloadSummary | None, ran: Collection[str]) -> str:
    if overload is None or not overload.executed:
        return "no case called it"
    if overload.name.removeprefix("aten::") not in ran:
        return "its cases launched nothing"
    return f"{overload.verdict.value}: {overload.reason}"
