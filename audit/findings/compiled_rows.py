"""A compiled case as the results store holds it: what became of it, beside what the judge said. Imports no torch."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from ..compiled.verdicts import Blame, CompiledOutcome, CompiledVerdict, of_uncompiled
from ..model.group import GroupKey
from ..model.verdicts import Outcome

# Written with the cases of a run under torch.compile; a case without a row ended its worker, or has no samples.
SCHEMA = """
CREATE TABLE IF NOT EXISTS compiled (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    aten TEXT NOT NULL,
    kernels INTEGER NOT NULL,
    graphs INTEGER NOT NULL,
    breaks TEXT NOT NULL,
    recompilations INTEGER NOT NULL,
    reason TEXT NOT NULL,
    line TEXT NOT NULL,
    blame TEXT NOT NULL,
    source BLOB NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
"""
COLUMNS = "verdict, aten, kernels, graphs, breaks, recompilations, reason, line, blame, source"


@dataclass(frozen=True)
class StoredCompiledCase:
    """A case of a run under torch.compile.

    Attributes:
        group: its group.
        position: its place there.
        inputs: its inputs in words.
        found: what became of it; the generated source is kept where it is not right.
    """

    group: GroupKey
    position: int
    inputs: str
    found: CompiledOutcome

    @property
    def label(self) -> str:
        """What `mpsmith replay` calls it."""
        return self.group.label_of(self.position)


def fields_of(found: CompiledOutcome) -> tuple[object, ...]:
    """The columns of the table; the source of what is right is left out, and is generated again when it is wanted."""
    source = "" if found.verdict.is_right else found.source
    return (
        found.verdict.value,
        json.dumps(found.aten),
        found.kernels,
        found.graphs,
        json.dumps(found.breaks),
        found.recompilations,
        found.reason,
        found.line,
        found.blame.value if found.blame else "",
        zlib.compress(source.encode()) if source else b"",
    )


def found_in(outcome: Outcome, columns: tuple[object, ...]) -> CompiledOutcome:
    """What the columns say; all of them are NULL for a case that nothing was recorded of but its outcome."""
    verdict, aten, kernels, graphs, breaks, recompilations, reason, line, blame, source = columns
    if verdict is None:
        return CompiledOutcome(of_uncompiled(outcome), outcome, reason=outcome.message)
    return CompiledOutcome(
        CompiledVerdict(verdict),
        outcome,
        tuple(json.loads(str(aten))),
        int(str(kernels)),
        int(str(graphs)),
        tuple(json.loads(str(breaks))),
        int(str(recompilations)),
        str(reason),
        str(line),
        Blame(blame) if blame else None,
        zlib.decompress(source).decode() if isinstance(source, bytes) and source else "",
    )
