"""``mpsmith audit --releases``: an audit with the torch of each release, one after the other, and all side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MpsmithError
from .printing import say

if TYPE_CHECKING:
    from ..audit.findings.store import Run
    from ..reports.evidence.sides import Side, SideVerdict

OPTION = "--releases"
# What is for the whole of it, and not for the audit of one release.
_OF_ALL = ("--resume",)
MOST_LINES = 40


def audit_releases(releases: Sequence[str], store: Path, *, resume: bool, audit: Callable[[str, bool], None]) -> None:
    """Audit with each release that the store has no finished run of, and print the matrix.

    Args:
        releases: of torch, such as 2.13.0.
        store: where all runs go.
        resume: go on with what was stopped: the releases that are finished stay as they are.
        audit: runs the audit with one release; its second argument says whether that is gone on with.
    """
    earlier = _runs(store) if resume else {}
    if resume and not earlier:
        raise MpsmithError(f"{store}: holds no audit of these releases, there is nothing to resume")
    for release in releases:
        before = earlier.get(release)
        if before is not None and before.finished is not None:
            say(f"torch {release}: run {before.id} is finished")
        else:
            audit(release, before is not None)
    print_matrix(releases, store)


def arguments_of_one(arguments: Sequence[str]) -> list[str]:
    """The command line of the audit of one release: without `--releases A,B` and what is for all of them."""
    kept = [each for each in arguments if not each.startswith(f"{OPTION}=") and each not in _OF_ALL]
    while OPTION in kept:
        at = kept.index(OPTION)
        del kept[at : at + 2]
    return kept


def print_matrix(releases: Sequence[str], path: Path) -> None:
    """How every overload stands that does not stand alike with all releases; those that got worse come first."""
    from tabulate import tabulate

    from ..audit.findings.store import Store
    from ..reports.evidence.sides import side_of_run

    runs = _runs(path)
    with Store.open(path) as store:
        sides = [side_of_run(store, runs[release]) for release in releases if release in runs]
    differing = rows(sides)
    mark = " (SIMULATED)" if any(side.simulated for side in sides) else ""
    print(f"{len(differing):,} of {len({name for side in sides for name in side.overloads}):,} overloads differ{mark}")
    if differing:
        shown = [(name, *standings) for name, standings in list(differing.items())[:MOST_LINES]]
        print(tabulate(shown, headers=("overload", *releases), tablefmt="github"))
    if len(differing) > MOST_LINES:
        print(f"and {len(differing) - MOST_LINES:,} more")
    numbers = ", ".join(f"torch {release} is run {runs[release].id}" for release in releases if release in runs)
    print(f"{numbers}; every difference of two: mpsmith compare {path} {path} --run N --after-run M")


def rows(sides: Sequence[Side]) -> dict[str, tuple[str, ...]]:
    """The standings of each overload that differ, by name; first what is broken with the newest release alone."""
    names = sorted({name for side in sides for name in side.overloads})
    found: dict[str, tuple[SideVerdict | None, ...]] = {
        name: tuple(side.overloads.get(name) for side in sides) for name in names
    }
    differing = {name: each for name, each in found.items() if len(set(map(str, each))) > 1}

    def rank(name: str) -> tuple[bool, str]:
        *before, last = differing[name]
        newly = last is not None and last.broken and not any(each is not None and each.broken for each in before)
        return not newly, name

    return {
        name: tuple("-" if each is None else str(each) for each in differing[name])
        for name in sorted(differing, key=rank)
    }


def _runs(path: Path) -> Mapping[str, Run]:
    """The newest run with each release of torch that has the settings of the store's newest run."""
    from ..audit.findings.store import Store
    from ..registry.torch_release import public_version

    if not path.exists():
        return {}
    with Store.open(path) as store:
        newest = store.newest_run()
        return {
            public_version(run.environment["torch"]): run
            for run in store.runs()
            if newest is not None and run.settings == newest.settings
        }
