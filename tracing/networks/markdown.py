"""The page of the networks, docs/networks.md, as `mpsmith networks --markdown` writes it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .observation import Observation
from .standing import NetworkStanding
from .tables import METHOD, Table, all_tables, in_brief

_WIDTH = 115


def page(standings: Sequence[NetworkStanding], observations: Sequence[Observation], command: str) -> str:
    """The page; `command` is what writes it."""
    return "\n\n".join(_blocks(standings, observations, command)) + "\n"


def _blocks(standings: Sequence[NetworkStanding], observations: Sequence[Observation], command: str) -> Iterator[str]:
    yield "# Networks, release by release"
    written = f"{in_brief(standings, observations)}\n`{command}` writes this page;\n"  # a command is on one line
    yield written + _filled(
        "`mpsmith networks --model package.module:function` does the same for a network of your own: the function "
        "returns a torch.nn.Module and a tuple of its inputs, or a `mpsmith.tracing.networks.workload.Workload` that "
        "also says how a step of inference goes and what the loss is."
    )
    yield _filled(METHOD)
    for table in all_tables(standings, observations):
        yield f"## {table.heading}"
        if table.note:
            yield _filled(table.note)
        yield "\n".join(_rows(table))


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _rows(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(table.titles)} |"
    yield f"|{'---|' * len(table.titles)}"
    for row in table.rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
