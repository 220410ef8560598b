"""Pages about torch.compile: defects of its Metal, and the injected faults that audits find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..table import Document, Table
from .page import PageInputs

if TYPE_CHECKING:
    from ...audit.self_test.compiled.run import TriedFault

# Verdicts that only the checks of the simulator give.
VERDICTS_OF_CHECKS = ("race", "undefined lanes")


def defects(inputs: PageInputs) -> Document:
    """The known defects with their programs, as `mpsmith compiled defects --record` measured them."""
    from ...audit.compiled.defects.measurement_file import read
    from ...audit.compiled.defects.table import DEFECTS
    from .compiled_defects import defects_document

    return defects_document(DEFECTS, read())


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
