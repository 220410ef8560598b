"""The page that says which known defects an audit finds by itself: docs/compiled_found.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .markdown import escaped

if TYPE_CHECKING:
    from ..audit.findings.compiled.defect_matches import FoundByAudits, FoundDefect
    from ..audit.findings.compiled.summary import CompiledFinding

# So many operators of a defect are named.
MOST_NAMES = 6

_HEAD = """\
# What an audit under torch.compile finds of the known defects

The defects of [compiled_findings.md](compiled_findings.md) were found by audits and by hand. Here stands which of them
the ordinary cases of audits show, on the **simulated** mps device with torch {release}: {cases:,} cases{left}.
A finding is taken for a defect by what it showed, its operator and the generated source
(`audit/findings/rules/generated_metal.py`), which is no proof.

```
mpsmith audit --compile --sources opinfo --dtypes float32 --store float32.sqlite
mpsmith audit --compile --sources 'compiled situations' --dtypes float32,int64,uint8 --store situations.sqlite
mpsmith compiled found --store float32.sqlite --store situations.sqlite --markdown docs/compiled_found.md
```

{found} of {all} defects are found, {out_of_reach} are out of an audit's reach, {missed} are missed.

| | defect | first case | as | cases | operators |
|---|---|---|---|---|---|
"""


def compiled_found_page(found: FoundByAudits, titles: Mapping[str, str], release: str) -> str:
    """The page in Markdown.

    Args:
        found: what audits found.
        titles: of the defects by their numbers.
        release: of the installed torch.
    """
    from ..audit.findings.compiled.defect_matches import NOT_ASKED

    seen = sum(bool(each.findings) for each in found.defects)
    explained = sum(each.explained for each in found.defects)
    done = f"{found.groups - found.left:,} of {found.groups:,} groups"
    head = _HEAD.format(
        release=release,
        cases=found.cases,
        left=f" ({done}; the audits did not end)" if found.left else "",
        found=seen,
        all=len(found.defects),
        out_of_reach=explained - seen,
        missed=len(found.defects) - explained,
    )
    lines = [head + "\n".join(_row(each, titles[each.number]) for each in found.defects)]
    reasons = [f"- {each.number}: {NOT_ASKED[each.number]}." for each in found.defects if _out_of_reach(each)]
    if reasons:
        lines += ["", "Out of reach:", "", *reasons]
    if found.others:
        lines += [
            "",
            "## What else they found",
            "",
            "| operator | as | blame | first case | what |",
            "|---|---|---|---|---|",
        ]
        lines += [_other(each) for each in found.others]
    return "\n".join(lines) + "\n"


def compiled_found_data(found: FoundByAudits) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "simulated": True,
        "cases": found.cases,
        "groups": found.groups,
        "groups_left": found.left,
        "defects": [
            {
                "number": each.number,
                "found": bool(each.findings),
                "out_of_reach": _out_of_reach(each),
                "example": each.findings[0].example if each.findings else None,
                "cases": each.cases,
                "operators": each.operators,
            }
            for each in found.defects
        ],
        "others": [
            {"operator": each.operator, "verdict": each.verdict.value, "example": each.example, "reason": each.reason}
            for each in found.others
        ],
    }


def _out_of_reach(defect: FoundDefect) -> bool:
    return defect.explained and not defect.findings


def _row(defect: FoundDefect, title: str) -> str:
    if not defect.findings:
        return f"| {defect.number} | {title} | {'–' if defect.explained else '**none**'} | | | |"
    first = defect.findings[0]
    names = [f"`{name}`" for name in defect.operators[:MOST_NAMES]]
    more = len(defect.operators) - len(names)
    operators = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    return f"| {defect.number} | {title} | `{first.example}` | {first.verdict.value} | {defect.cases} | {operators} |"


def _other(finding: CompiledFinding) -> str:
    blame = finding.blame.value if finding.blame else "–"
    what = escaped(finding.reason[:160])
    return f"| `{finding.operator}` | {finding.verdict.value} | {blame} | `{finding.example}` | {what} |"
