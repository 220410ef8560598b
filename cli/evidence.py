"""`mpsmith evidence`: what a machine shows of its mps device in one file, and what many machines showed."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..audit.model.selection import Samples, Settings
from ..audit.running.worker_limits import default_workers
from .evidence_text import (
    added_json,
    added_lines,
    devices_json,
    devices_lines,
    file_json,
    file_lines,
    kernel_table,
    machine_line,
    mark,
)
from .kernels import open_with_kernels
from .options import AsJson, AuditedOperators, Workers, require_writable, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..reports.evidence.schema import EvidenceFile

app = typer.Typer(
    name="evidence", help="Evidence of real devices: collect it on a Mac, check it, add it.", no_args_is_help=True
)

DEFAULT_FILE = Path("evidence.json.gz")
DEFAULT_WORK = Path("mpsmith-evidence")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A file of evidence, as `mpsmith evidence collect` writes.")]


@app.command()
def collect(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = DEFAULT_FILE,
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Holds intermediate results, so that a stopped collection can continue.")
    ] = DEFAULT_WORK,
    samples: Annotated[Samples, typer.Option(help="How many cases of each operator and dtype.")] = Samples.QUICK,
    ops: AuditedOperators = None,
    dtypes: Annotated[list[str] | None, typer.Option(help="Only these dtypes; repeated or joined by commas.")] = None,
    sources: Annotated[
        list[str] | None, typer.Option(help="Only cases from these sources; repeated or joined by commas.")
    ] = None,
    kernels: Annotated[
        bool, typer.Option("--kernels/--no-kernels", help="Verify and time kernels too; with --ops only theirs.")
    ] = True,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Audit this machine's mps device, verify and time the kernels, and write one small file.

    On a Mac that takes about ten minutes. Run it again to continue. The file names no user, host,
    path or serial number. Without a Mac the device is simulated, and the file says so.
    """
    os.environ["MPSMITH_KERNELS"] = "off"  # what torch itself does is audited
    from ..reports.evidence.collecting import Collection, collect
    from ..reports.evidence.files import write

    settings = Settings(
        samples=samples,
        ops=values_of(ops, "--ops"),
        dtypes=values_of(dtypes, "--dtypes"),
        sources=values_of(sources, "--sources"),
        workers=workers or default_workers(),
    )
    require_writable("--out", out)
    require_writable("--work", work / "audit.sqlite")
    families = _families(settings.ops) if kernels else []
    say(f"work is kept in {work}, the evidence goes to {out}; nothing else is written")
    try:
        done = count(1)
        collection = Collection(settings, families, work, open_with_kernels)
        evidence = collect(collection, say, lambda family: say(f"kernels: {family} ({next(done)} of {len(families)})"))
    except KeyboardInterrupt:
        say(f"stopped; what had finished is in {work}: run the same command to go on")
        raise typer.Exit(130) from None
    size = write(evidence, out)
    if as_json:
        print_json({"file": str(out), "bytes": size, **_summary(evidence)})
        return
    print(f"{out}: {size:,} bytes, {mark(evidence.simulated)}")
    print(f"  {machine_line(evidence.machine)}")
    print(f"  {evidence.audit.executed:,} cases, {len(evidence.audit.overloads):,} overloads")
    if evidence.kernels:
        print(kernel_table(evidence.kernels))
    print(f"look at it: mpsmith evidence show {out}")


def _summary(evidence: EvidenceFile) -> dict[str, object]:
    return {
        "simulated": evidence.simulated,
        "executed": evidence.audit.executed,
        "overloads": len(evidence.audit.overloads),
        "kernels": {row.family: row.passed for row in evidence.kernels},
    }


def _families(ops: Sequence[str]) -> list[str]:
    """The kernel families of the selected operators; all if none is selected."""
    from fnmatch import fnmatchcase

    from ..kernels.runtime.catalog import all_kernels, families

    if not ops:
        return list(families())
    wanted = [name.removeprefix("aten::").split(".")[0] for name in ops]
    return sorted(
        {
            kernel.family
            for kernel in all_kernels()
            if any(fnmatchcase(kernel.operator.removeprefix("aten::"), name) for name in wanted)
        }
    )


@app.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file of evidence; without one, all that was added.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check and show one file of evidence, or show what all added evidence says and where devices disagree.

    A file is refused if it does not fit the schema, or if its verdicts do not follow from its cases.
    """
    if file is not None:
        from ..reports.evidence.checking import checked

        evidence = checked(file)
        if as_json:
            print_json(file_json(evidence))
        else:
            _print(file_lines(evidence))
        return
    from ..reports.evidence.adding import added_evidence
    from ..reports.evidence.devices import findings_by_device
    from ..reports.evidence.files import evidence_folder

    findings = findings_by_device(added_evidence(evidence_folder()))
    if as_json:
        print_json(devices_json(findings))
    else:
        _print(devices_lines(findings))


@app.command()
def add(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of evidence, as `mpsmith evidence collect` writes.")
    ],
    as_json: AsJson = False,
) -> None:
    """Add evidence files to the registry, and update it with the results of real devices.

    If one file is refused, none is added.
    """
    os.environ["MPSMITH_KERNELS"] = "off"
    from ..reports.evidence.adding import add

    added = add(files, None)
    if as_json:
        print_json(added_json(added))
    else:
        _print(added_lines(added))


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)
