"""Pages about torch.compile: defects of its Metal, which of them audits find, and its code generators compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..table import Cell, Document, Table, shortened
from .page import PageInputs

if TYPE_CHECKING:
    from ...audit.findings.compiled.defect_matches import FoundByAudits, FoundDefect
    from ...audit.findings.compiled.generators import GeneratorCounts
    from ...audit.findings.compiled.summary import CompiledFinding
    from ...audit.self_test.compiled.run import TriedFault

SHOWN_NAMES = 6
SHOWN_CHANGES = 40
# Verdicts that only the checks of the simulator give.
VERDICTS_OF_CHECKS = ("race", "undefined lanes")


def defects(inputs: PageInputs) -> Document:
    """The known defects with their programs, as `mpsmith compiled defects --record` measured them."""
    from ...audit.compiled.defects.measurement_file import read
    from ...audit.compiled.defects.table import DEFECTS
    from .compiled_defects import defects_document

    return defects_document(DEFECTS, read())


def defects_found_by_audits(inputs: PageInputs) -> Document:
    """Which known defects the audits under torch.compile in the stores found."""
    from ...audit.compiled.defects.table import DEFECTS
    from ...audit.findings.compiled.defect_matches import found_by_audits
    from ...audit.store.store import Store

    with ExitStack() as opened:
        stores = [opened.enter_context(Store.open(path)) for path in inputs.stores]
        audited = found_by_audits(stores, [defect.number for defect in DEFECTS])
    titles = {defect.number: defect.title for defect in DEFECTS}
    return found_document(audited, titles, _installed_release())


def found_document(audited: FoundByAudits, titles: Mapping[str, str], release: str) -> Document:
    """The same from what audits found.

    Args:
        audited: what audits found.
        titles: the titles of the defects by number.
        release: the installed torch.
    """
    from ...audit.findings.compiled.defect_matches import NOT_ASKED

    seen = sum(bool(each.findings) for each in audited.defects)
    explained = sum(each.explained for each in audited.defects)
    done = f"{audited.groups - audited.left:,} of {audited.groups:,} groups"
    unfinished = f" ({done}; the audits did not end)" if audited.left else ""
    hidden = [each.number for each in audited.defects if each.explained and not each.findings]
    defect_columns = ("", "defect", "first case", "verdict", "cases", "operators")
    return Document(
        "The known defects that audits under torch.compile find",
        [
            "The page compiled_defects lists the defects. Audits found some of them, people the others. This page says "
            "which of them ordinary cases of audits show, on the **simulated** mps device with torch "
            f"{release}: {audited.cases:,} cases{unfinished}. A finding is matched with a defect by its outcome, its "
            "operator and the generated source, which does not prove a match.",
            _FOUND_COMMANDS,
            f"{seen} of {len(audited.defects)} defects are found, {explained - seen} are out of an audit's reach, "
            f"{len(audited.defects) - explained} are missed.",
            *(f"Out of reach, {number}: {NOT_ASKED[number]}." for number in hidden),
        ],
        [
            Table(
                "Defects",
                defect_columns,
                tuple(_found_row(each, titles[each.number]) for each in audited.defects),
                code=frozenset({"first case"}),
            ),
            Table(
                "Other findings of these audits",
                ("operator", "verdict", "attributed to", "first case", "reason"),
                tuple(map(_other_row, audited.others)),
                code=frozenset({"operator", "first case"}),
            ),
        ],
    )


_FOUND_COMMANDS = """\
```
mpsmith audit --compile --sources opinfo --dtypes float32 --store float32.sqlite
mpsmith audit --compile --sources 'compiled situations' --dtypes float32,int64,uint8 --store situations.sqlite
```"""


def _found_row(defect: FoundDefect, title: str) -> tuple[Cell, ...]:
    if not defect.findings:
        return defect.number, title, "", "out of reach" if defect.explained else "MISSED", "", ""
    first = defect.findings[0]
    operators = shortened(defect.operators, SHOWN_NAMES)
    return defect.number, title, first.example, first.verdict.value, defect.cases, operators


def _other_row(finding: CompiledFinding) -> tuple[Cell, ...]:
    stage = finding.faulty_stage.value if finding.faulty_stage else ""
    return finding.operator, finding.verdict.value, stage, finding.example, finding.reason[:160]


def generators(inputs: PageInputs) -> Document:
    """The newest audits with each release's code generator, from the first store."""
    from ...audit.findings.compiled.generators import compared, generator_runs
    from ...audit.store.store import Store

    with Store.open(inputs.stores[0]) as opened:
        return generators_document(compared(generator_runs(opened)))


def generators_document(counts: Sequence[GeneratorCounts]) -> Document:
    """The same from the counts of each audit, the oldest release first."""
    base = ", ".join(dict.fromkeys(each.run.base for each in counts if each.run.overlay))
    return Document(
        "torch.compile's Metal for mps, release by release",
        [
            "SIMULATED. *Overlay*: the code generator of a release in place of that of the installed torch "
            f"{base}; no installed torch has this combination. The cases are those that all of these audits executed. "
            "*Lowered*: generated Metal, right in all cases. *Right*: right in all cases, in Metal or by fallback.",
            _GENERATOR_COMMANDS,
            *(f"- {line}" for line in _changes(counts)),
        ],
        [
            Table("Each code generator", _GENERATOR_COLUMNS, tuple(map(_generator_row, counts))),
            Table(
                "Operators that differ",
                ("operator", *map(_generator_name, counts)),
                tuple(_differing_operators(counts)),
                "The worst verdict of an operator's cases.",
                frozenset({"operator"}),
            ),
        ],
    )


_GENERATOR_COLUMNS = ("code generator of torch", "operators", "lowered", "right", "wrong", "otherwise not right")
_GENERATOR_COMMANDS = """\
```
mpsmith audit --compile --sources 'compiled situations' --dtypes float32,int64,uint8 --store r.sqlite
# and once more with --codegen 2.15.0, and each other release
```"""


def _differing_operators(counts: Sequence[GeneratorCounts]) -> Iterator[tuple[str, ...]]:
    """The operators whose verdict is not the same in all audits."""
    for name in sorted(counts[0].verdicts):
        verdicts = [each.verdicts[name].value for each in counts]
        if len(set(verdicts)) > 1:
            yield name, *verdicts


def _generator_row(counts: GeneratorCounts) -> tuple[Cell, ...]:
    return _generator_name(counts), counts.operators, counts.lowered, counts.right, counts.wrong, counts.others


def _generator_name(counts: GeneratorCounts) -> str:
    return f"{counts.run.release} (overlay)" if counts.run.overlay else counts.run.release


def _changes(counts: Sequence[GeneratorCounts]) -> Iterator[str]:
    """What each generator fixed and broke."""
    for each in counts:
        for verb, names in (("fixed", each.mended), ("broke", each.broken)):
            if names:
                yield f"{_generator_name(each)} {verb} {shortened(names, SHOWN_CHANGES)}"


def generator_faults(inputs: PageInputs) -> Document:
    """Which faults in the code generator ordinary cases of an audit find."""
    from ...audit.self_test.compiled.run import try_all
    from ...audit.self_test.compiled.table import FAULTS

    return faults_document(try_all(FAULTS, inputs.report), _installed_release())


def faults_document(tried: Sequence[TriedFault], release: str) -> Document:
    """The same from the faults and what found each of them; `release` is that of the installed torch."""
    found = [each for each in tried if each.found]
    checked = [each for each in found if mode_of(each) == "checked"]
    return Document(
        "Faults in the code generator that audits find",
        [
            "An audit under torch.compile that finds nothing may have nothing to find, or may be unable to find it. So "
            "a line of `torch/_inductor/codegen/mps.py` is changed, the changed generator replaces the installed one, "
            "and ordinary cases of the auditor run with it on the **simulated** mps device. A fault is found if a case "
            "fails that passes without the fault.",
            f"{len(found)} of {len(tried)} faults were found with torch {release}: {len(found) - len(checked)} by "
            "different values or an access out of bounds, without the simulator's checks (`fast`); "
            f"{len(checked)} only with the checks (`checked`), while values are right.",
        ],
        [
            Table(
                "Each fault",
                ("fault", "kind", "found by", "verdict", "mode"),
                tuple(map(_fault_row, tried)),
                code=frozenset({"found by"}),
            )
        ],
    )


def mode_of(tried: TriedFault) -> str:
    """The mode of the simulator in which a fault showed, or "" for none."""
    if tried.found is None:
        return ""
    return "checked" if tried.found.verdict in VERDICTS_OF_CHECKS or ", checked:" in tried.found.reason else "fast"


def _fault_row(tried: TriedFault) -> tuple[str, ...]:
    case, verdict = (tried.found.case, tried.found.verdict) if tried.found else ("", "NOT FOUND")
    return tried.fault.name, tried.fault.kind, case, verdict, mode_of(tried)


def _installed_release() -> str:
    from ...audit.releases.surface.native_functions import installed_release
    from ...registry.torch_release import public_version

    return public_version(installed_release())
