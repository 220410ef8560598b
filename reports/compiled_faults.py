"""The page that says which faults in the code generator the audit finds: docs/compiled_self_test.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..audit.self_test.compiled.run import TriedFault

# Verdicts that only the checks of the simulator give: values were right where nothing is checked.
OF_CHECKS = ("race", "undefined lanes")

_HEAD = """\
# Faults in the code generator, and what finds them

An audit under torch.compile that finds nothing may mean that nothing is wrong, or that it is blind. So a line of
`torch/_inductor/codegen/mps.py` is changed, the changed generator is laid over the installed one, and ordinary cases of
the auditor's sources run through it on the **simulated** mps device. A fault is found where a case is not right that is
right without it. Of the sources, `mpsmith audit --compile` asks `opinfo` and `compiled situations` of itself, and
`special values` where `--sources` names it.

```
mpsmith compiled faults                    # exits with 1 where one is not found
mpsmith compiled faults --markdown FILE    # writes this page
```

{found} of {all} faults were found with torch {release}: {fast} by values that differ, or an access that is not allowed,
where nothing is checked (`fast`); {checked} only where every access is (`checked`), with right values.

| fault | kind | found by | as | mode |
|---|---|---|---|---|
"""


def compiled_faults_page(tried: Sequence[TriedFault], release: str) -> str:
    """The page in Markdown.

    Args:
        tried: the faults and what found them.
        release: of the installed torch.
    """
    found = [each for each in tried if each.found]
    checked = [each for each in found if mode_of(each) == "checked"]
    head = _HEAD.format(
        found=len(found), all=len(tried), release=release, fast=len(found) - len(checked), checked=len(checked)
    )
    return head + "".join(f"{_row(each)}\n" for each in tried)


def mode_of(tried: TriedFault) -> str:
    """In which mode of the simulator a fault showed, or "" where it did not."""
    if tried.found is None:
        return ""
    return "checked" if tried.found.verdict in OF_CHECKS or ", checked:" in tried.found.reason else "fast"


def _row(tried: TriedFault) -> str:
    found = tried.found
    case, verdict = (f"`{found.case}`", found.verdict) if found else ("**nothing**", "")
    return f"| {tried.fault.name} | {tried.fault.kind} | {case} | {verdict} | {mode_of(tried)} |"
