"""``mpsmith learn``: search for calls of every overload that the CPU accepts, and remember them for audits."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..cache import is_checkout
from ..errors import MpsmithError
from .options import AsJson, Operators, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..audit.cases.calls.memory import Memory
    from ..audit.cases.learning.learning import OverloadToLearn, Progress


def learn(
    ops: Operators = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that try calls; two more verify them.")] = max(
        1, (os.cpu_count() or 1) - 1
    ),
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The memory to go on with and write; by default the clone's."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is known, and learn from samples anew.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn which calls of each overload the installed torch's CPU accepts; `mpsmith audit` replays them on mps.

    What is remembered of another torch is used where the schema is the same, and learned anew where it is not.
    Ctrl-C keeps what was learned.
    """
    from ..audit.cases.calls.invocation import fingerprint
    from ..audit.cases.calls.memory import FOLDER, Memory
    from ..audit.cases.learning.learning import learn as learn_calls
    from ..audit.releases.surface import installed_surface
    from ..registry.torch_release import public_version

    if to is None and not is_checkout():
        raise MpsmithError("an installed mpsmith keeps its memory as it is; name a folder of your own with --to DIR")
    folder = to or FOLDER
    surface = installed_surface()
    before = Memory.load(folder if folder.exists() else FOLDER)
    release = public_version(surface.release)
    reachable = {target.name for target in _targets(())}
    known = {} if fresh else before.fitting(fingerprint).overloads
    memory = Memory(release, {name: remembered for name, remembered in known.items() if name in reachable})
    targets = _targets(values_of(ops, "--ops"))
    if before.torch not in ("", release) and not fresh:
        kept = len(memory.overloads)
        say(f"the memory is of torch {before.torch}: {kept:,} overloads have the same schema, the rest is learned anew")
    record = any(target.name not in memory.overloads for target in targets)
    try:
        with _shown() as progress:
            for _ in learn_calls(targets, memory, workers, progress, record=record):
                pass
    except KeyboardInterrupt:
        memory.save(folder)
        say(f"stopped; what was learned is in {folder}")
        raise typer.Exit(130) from None
    memory.save(folder)
    counts = LearntCounts.of(memory, targets)
    if as_json:
        print_json({"torch": release, "folder": str(folder), **asdict(counts)})
        return
    for line in counts.lines():
        print(line)
    print(f"written to {folder}")


@dataclass(frozen=True)
class LearntCounts:
    """How many of `overloads` have enough calls, some and none, and how many are known to have no kernel at all."""

    overloads: int
    enough: int
    some: int
    none: int
    without_cpu_kernel: int

    @classmethod
    def of(cls, memory: Memory, targets: Sequence[OverloadToLearn]) -> LearntCounts:
        """Count what the memory holds of the targets."""
        remembered = [memory.overloads[target.name] for target in targets if target.name in memory.overloads]
        accepted = [calls for calls in remembered if not calls.refused]
        enough = sum(calls.enough for calls in accepted)
        some = sum(bool(calls.calls) for calls in accepted) - enough
        refused = len(remembered) - len(accepted)
        return cls(len(targets), enough, some, len(targets) - enough - some, refused)

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"{self.overloads:,} overloads: {self.enough:,} have 3 or more accepted calls (or the only one there can "
            f"be), {self.some:,} have 1 or 2, {self.none:,} have none",
            f"of those without, {self.without_cpu_kernel:,} have no CPU kernel: their calls show whether mps has one",
        ]


def _targets(patterns: tuple[str, ...]) -> list[OverloadToLearn]:
    from ..audit.cases.learning.learning import OverloadToLearn
    from ..audit.releases.surface import installed_surface

    surface = installed_surface()
    overloads = [o for o in surface.overloads if o.reachable]
    for pattern in patterns:
        if not any(_matches(pattern, o.name, o.operator) for o in overloads):
            raise MpsmithError(f"no reachable overload matches {pattern!r} (`mpsmith surface` lists them)")
    origins = {o.name: surface.by_name[o.generated_from] if o.generated_from else o for o in overloads}
    return [
        OverloadToLearn(o.name, origin.dispatch.has_kernel or origin.sparse or origin.sparse_compressed)
        for o, origin in ((o, origins[o.name]) for o in overloads)
        if not patterns or any(_matches(pattern, o.name, o.operator) for pattern in patterns)
    ]


def _matches(pattern: str, *names: str) -> bool:
    wanted = pattern.removeprefix("aten::")
    return any(fnmatch.fnmatchcase(name.removeprefix("aten::"), wanted) for name in names)


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, elsewhere a line for every tenth part."""
    if not sys.stderr.isatty():
        shown: set[tuple[str, int]] = set()

        def line(progress: Progress) -> None:
            tenth = 10 * progress.done // max(1, progress.total)
            if (progress.title, tenth) not in shown:
                shown.add((progress.title, tenth))
                say(f"{progress.title}: {progress.done:,} of {progress.total:,}")

        yield line
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}

        def draw(progress: Progress) -> None:
            if progress.title not in tasks:
                tasks[progress.title] = bar.add_task(progress.title, total=progress.total)
            bar.update(tasks[progress.title], completed=progress.done)  # type: ignore[arg-type]

        yield draw
