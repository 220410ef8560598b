"""The command of the argument search: `python -m mpsmith.audit.cases.argument_search`.

It finds calls of each overload that the CPU accepts. `mpsmith audit` runs the recorded calls on mps. Calls
recorded with another torch are kept if the schema is the same, and tried again if it is not. A call that was written
into a file by hand is tried first. Ctrl-C keeps what was found.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....cache import is_checkout
from ....errors import MpsmithError
from ....registry.torch_release import public_version
from ...releases.surface import installed_surface
from ..calls.invocation import fingerprint
from ..calls.recorded_calls import FOLDER, RecordedCalls
from .engine import Progress, SearchedOverload, search_calls


def main() -> None:
    """Search as the arguments say."""
    options = _parser().parse_args()
    try:
        _search(tuple(options.ops), options.workers, options.to, fresh=options.fresh)
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpsmith.audit.cases.argument_search", description=__doc__)
    parser.add_argument(
        "--ops", action="append", default=[], metavar="OP", help="only overloads of this name or pattern"
    )
    workers = max(1, (os.cpu_count() or 1) - 1)
    parser.add_argument("--workers", type=int, default=workers, help="processes that try calls; two more verify them")
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="the folder of recorded calls to extend; default: the one in the clone"
    )
    parser.add_argument("--fresh", action="store_true", help="try all recorded calls again")
    return parser


def _search(patterns: tuple[str, ...], workers: int, to: Path | None, *, fresh: bool) -> None:
    if to is None and not is_checkout():
        raise MpsmithError("an installed mpsmith does not change its recorded calls; name another folder with --to DIR")
    folder = to or FOLDER
    before = RecordedCalls.load(folder if folder.exists() else FOLDER)
    release = public_version(installed_surface().release)
    reachable = {target.name for target in _targets(())}
    recorded = {} if fresh else before.fitting(fingerprint).overloads
    recorded_calls = RecordedCalls(release, {name: calls for name, calls in recorded.items() if name in reachable})
    targets = _targets(patterns)
    if before.torch not in ("", release) and not fresh:
        kept = len(recorded_calls.overloads)
        _say(f"the recorded calls are of torch {before.torch}: {kept:,} overloads have the same schema")
    candidates = {name: calls.calls for name, calls in before.overloads.items() if calls.calls}
    record = any(t.name not in recorded_calls.overloads and t.name not in candidates for t in targets)
    try:
        for _ in search_calls(
            targets, recorded_calls, workers, _progress_lines(), record=record, candidates=candidates
        ):
            pass
    except KeyboardInterrupt:
        recorded_calls.save(folder)
        _say(f"stopped; the calls found so far are in {folder}")
        sys.exit(130)
    recorded_calls.save(folder)
    for line in CallCounts.of(recorded_calls, targets).lines():
        print(line)
    print(f"written to {folder}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress_lines() -> Callable[[Progress], None]:
    """Prints a line for every tenth part of a step."""
    printed: set[tuple[str, int]] = set()

    def show(progress: Progress) -> None:
        tenth = 10 * progress.done // max(1, progress.total)
        if (progress.title, tenth) not in printed:
            printed.add((progress.title, tenth))
            _say(f"{progress.title}: {progress.done:,} of {progress.total:,}")

    return show


@dataclass(frozen=True)
class CallCounts:
    """How many of `overloads` have enough calls, some or none, and how many have no CPU kernel."""

    overloads: int
    enough: int
    some: int
    none: int
    without_cpu_kernel: int

    @classmethod
    def of(cls, recorded_calls: RecordedCalls, targets: Sequence[SearchedOverload]) -> CallCounts:
        """Count the recorded calls of the targets."""
        recorded = [
            recorded_calls.overloads[target.name] for target in targets if target.name in recorded_calls.overloads
        ]
        accepted = [calls for calls in recorded if not calls.refused]
        enough = sum(calls.enough for calls in accepted)
        some = sum(bool(calls.calls) for calls in accepted) - enough
        refused = len(recorded) - len(accepted)
        return cls(len(targets), enough, some, len(targets) - enough - some, refused)

    def lines(self) -> list[str]:
        """The counts as text."""
        return [
            f"{self.overloads:,} overloads: {self.enough:,} have 3 or more accepted calls (or the only one there can "
            f"be), {self.some:,} have 1 or 2, {self.none:,} have none",
            f"of those without, {self.without_cpu_kernel:,} have no CPU kernel: their calls show whether mps has one",
        ]


def _targets(patterns: tuple[str, ...]) -> list[SearchedOverload]:
    surface = installed_surface()
    overloads = [o for o in surface.overloads if o.reachable]
    for pattern in patterns:
        if not any(_matches(pattern, o.name, o.operator) for o in overloads):
            raise MpsmithError(f"no reachable overload matches {pattern!r} (`mpsmith coverage --operators` lists them)")
    origins = {o.name: surface.by_name[o.generated_from] if o.generated_from else o for o in overloads}
    return [
        SearchedOverload(o.name, origin.dispatch.has_kernel or origin.sparse or origin.sparse_compressed)
        for o, origin in ((o, origins[o.name]) for o in overloads)
        if not patterns or any(_matches(pattern, o.name, o.operator) for pattern in patterns)
    ]


def _matches(pattern: str, *names: str) -> bool:
    wanted = pattern.removeprefix("aten::")
    return any(fnmatch.fnmatchcase(name.removeprefix("aten::"), wanted) for name in names)


if __name__ == "__main__":
    main()
