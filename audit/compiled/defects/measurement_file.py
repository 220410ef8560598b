"""The last measured results of the defects' programs, in `measured.json`.

Only `mpsmith compiled defects --record` writes it, and reports/published/compiled_defects.md from it.
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
        reason: what differed, or the refusal; "" if it is right.
        faulty_stage: the compilation stage at fault for a wrong result; "" for any other.
        source: the generated Metal; "" if none was generated, and for releases other than the installed one.
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
        measurement.defect.number: StoredResult(
            verdict=measurement.outcome.verdict.value,
            reason=measurement.outcome.reason,
            faulty_stage=_faulty_stage(measurement),
            source="" if measured.overlay else measurement.outcome.source,
        )
        for measurement in measured.shown
    }
    return StoredRelease(measured.release, measured.overlay, measured.error, shown)


def _faulty_stage(shown: Shown) -> str:
    stage = shown.outcome.faulty_stage
    return stage.value if stage and not shown.defect.compiles_itself else ""


def joined(before: Sequence[StoredRelease], anew: Sequence[StoredRelease]) -> list[StoredRelease]:
    """The stored outcomes, updated by new measurements of some defects.

    Raises MpsmithError if the releases differ: a row of the page has a verdict for each release.
    """
    by_release = {stored.release: stored for stored in before}
    if set(by_release) != {measured.release for measured in anew}:
        raise MpsmithError(
            f"--record of single defects keeps the releases of the page: --codegen"
            f" {','.join(stored.release for stored in before if stored.overlay)}"
        )
    return [replace(measured, shown={**by_release[measured.release].shown, **measured.shown}) for measured in anew]


def write(releases: Sequence[StoredRelease], path: Path = FILE) -> None:
    """Write the outcomes of all releases."""
    path.write_text(json.dumps([asdict(stored) for stored in releases], indent=1) + "\n", encoding="utf-8")


def read(path: Path = FILE) -> list[StoredRelease]:
    """Read the stored outcomes."""
    return [
        StoredRelease(
            fields["release"],
            fields["overlay"],
            fields["cannot"],
            {number: StoredResult(**shown) for number, shown in fields["shown"].items()},
        )
        for fields in json.loads(path.read_text(encoding="utf-8"))
    ]
