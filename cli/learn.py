"""``mpsmith learn``: search for calls of every overload that the CPU accepts, and remember them for audits."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..checkout import is_checkout
from ..errors import MpsmithError

if TYPE_CHECKING:
    from ..audit.calls.memory import Memory
    from ..audit.learning.learning import Progress, Target


def learn(
    ops: Annotated[
        list[str] | None,
        typer.Option(help="Only these: an operator, an overload, or a pattern such as 'linalg_*'; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that try calls; two more verify them.")] = max(
        1, (os.cpu_count() or 1) - 1
    ),
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The memory to go on with and write; by default the clone's."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is known, and learn from samples anew.")] = False,
) -> None:
    """Learn which calls of each overload the installed torch's CPU accepts; `mpsmith audit` replays them on mps.

    What is remembered of another torch is used where the schema is the same, and learned anew where it is not.
    Ctrl-C keeps what was learned.
    """
    from ..audit.calls.invocation import fingerprint
    from ..audit.calls.memory import FOLDER, Memory
    from ..audit.learning.learning import learn as learn_calls
    from ..audit.releases.data import plain_release
    from ..audit.surface import installed_surface

    if to is None and not is_checkout():
        raise MpsmithError("an installed mpsmith keeps its memory as it is; name a folder of your own with --to DIR")
    folder = to or FOLDER
    surface = installed_surface()
    before = Memory.load(folder if folder.exists() else FOLDER)
    release = plain_release(surface.release)
    reachable = {target.name for target in _targets(())}
    known = {} if fresh else before.fitting(fingerprint).overloads
    memory = Memory(release, {name: remembered for name, remembered in known.items() if name in reachable})
    targets = _targets(tuple(ops or ()))
    if before.torch not in ("", release) and not fresh:
        kept = len(memory.overloads)
        _say(
            f"the memory is of torch {before.torch}: {kept:,} overloads have the same schema, the rest is learned anew"
        )
    record = any(target.name not in memory.overloads for target in targets)
    try:
        with _shown() as progress:
            for _ in learn_calls(targets, memory, workers, progress, record=record):
                pass
    except KeyboardInterrupt:
        memory.save(folder)
        _say(f"stopped; what was learned is in {folder}")
        raise typer.Exit(130) from None
    memory.save(folder)
    for line in summary_lines(memory, targets):
        print(line)
    print(f"written to {folder}")


def summary_lines(memory: Memory, targets: list[Target]) -> list[str]:
    """How many of the targets have enough calls, some and none, and how many are known to have no kernel at all."""
    known = [memory.overloads[t.name] for t in targets if t.name in memory.overloads]
    accepted = [remembered for remembered in known if not remembered.refused]
    enough = sum(remembered.enough for remembered in accepted)
    some = sum(bool(remembered.calls) for remembered in accepted) - enough
    refused = len(known) - len(accepted)
    return [
        f"{len(targets):,} overloads: {enough:,} have 3 or more accepted calls (or the only one there can be), "
        f"{some:,} have 1 or 2, {len(targets) - enough - some:,} have none",
        f"of those without, {refused:,} have no CPU kernel: their calls show whether mps has one",
    ]


def _targets(patterns: tuple[str, ...]) -> list[Target]:
    from ..audit.learning.learning import Target
    from ..audit.surface import installed_surface

    surface = installed_surface()
    overloads = [o for o in surface.overloads if o.reachable]
    for pattern in patterns:
        if not any(_matches(pattern, o.name, o.operator) for o in overloads):
            raise MpsmithError(f"no reachable overload matches {pattern!r} (`mpsmith surface` lists them)")
    origins = {o.name: surface.by_name[o.generated_from] if o.generated_from else o for o in overloads}
    return [
        Target(o.name, origin.dispatch.has_kernel or origin.sparse or origin.sparse_compressed)
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
                _say(f"{progress.title}: {progress.done:,} of {progress.total:,}")

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


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
