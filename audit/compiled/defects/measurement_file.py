"""What the programs of the defects showed when they were last measured, kept beside them: `measured.json`.

`mpsmith compiled defects --record` writes it, and reports/published/compiled_defects.md from it; no other hand does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ....errors import MpsmithError
from .measuring import MeasuredRelease, Shown

FILE = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class StoredResult:
    """The outcome of one program with one code generator.

    Attributes:
        verdict: of the program.
        reason: what differed, or the refusal; "" where it is right.
        faulty_stage: the compilation stage at fault for a wrong result; "" for any other.
        source: the generated Metal; "" where none was generated, and for releases other than the installed one.
    """

    verdict: str
    reason: str
    faulty_stage: str
    source: str


@dataclass(frozen=True)
class StoredRelease:
    """The outcomes of all programs with the code generator of a release.

    Attributes:
        release: the release.
        overlay: whether it replaced the installed generator.
        cannot: why it does not work with the installed Inductor, or "".
        shown: by the number of the defect.
    """

    release: str
    overlay: bool
    cannot: str
    shown: Mapping[str, StoredResult]


def kept(measured: MeasuredRelease) -> StoredRelease:
    """The stored form of a measurement."""
    shown = {
        each.defect.number: StoredResult(
            verdict=each.outcome.verdict.value,
            reason=each.outcome.reason,
            faulty_stage=_faulty_stage(each),
            source="" if measured.overlay else each.outcome.source,
        )
        for each in measured.shown
    }
    return StoredRelease(measured.release, measured.overlay, measured.cannot, shown)


def _faulty_stage(shown: Shown) -> str:
    stage = shown.outcome.faulty_stage
    return stage.value if stage and not shown.defect.compiles_itself else ""


def joined(before: Sequence[StoredRelease], anew: Sequence[StoredRelease]) -> list[StoredRelease]:
    """The stored outcomes, updated by new measurements of some defects.

    Raises MpsmithError where the releases are not the same ones: a row of the page has a verdict for each.
    """
    known = {each.release: each for each in before}
    if set(known) != {each.release for each in anew}:
        raise MpsmithError(
            f"--record of single defects keeps the releases of the page: --codegen"
            f" {','.join(each.release for each in before if each.overlay)}"
        )
    return [replace(each, shown={**known[each.release].shown, **each.shown}) for each in anew]


def write(releases: Sequence[StoredRelease], path: Path = FILE) -> None:
    """Write the outcomes of all releases."""
    path.write_text(json.dumps([asdict(each) for each in releases], indent=1) + "\n", encoding="utf-8")


def read(path: Path = FILE) -> list[StoredRelease]:
    """Read the stored outcomes."""
    return [
        StoredRelease(
            each["release"],
            each["overlay"],
            each["cannot"],
            {number: StoredResult(**shown) for number, shown in each["shown"].items()},
        )
        for each in json.loads(path.read_text(encoding="utf-8"))
    ]
