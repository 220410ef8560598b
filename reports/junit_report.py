"""The report as JUnit XML: a test for each executed overload, which fails where mps does not do what the CPU does."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from ..audit.findings.results import AuditSummary, OverloadSummary
from ..audit.model.verdicts import OverloadVerdict
from ..errors import printable
from .wording import SIMULATED_NOTE


def render(summary: AuditSummary) -> str:
    """The XML. An overload that was not executed is skipped with its reason: it is never a pass."""
    suite = ElementTree.Element("testsuite", name="mpsmith audit")
    if summary.run.simulated:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="simulated", value=SIMULATED_NOTE)
    results = Counter(_add(suite, overload) for overload in summary.overloads)
    for name, number in (("tests", results.total()), ("failures", results["failure"]), ("skipped", results["skipped"])):
        suite.set(name, str(number))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _add(suite: ElementTree.Element, overload: OverloadSummary) -> str:
    """Add the test of one overload; returns how it ended: passed, failure or skipped."""
    case = ElementTree.SubElement(suite, "testcase", classname=overload.operator, name=overload.name)
    unknown = (OverloadVerdict.UNREACHABLE, OverloadVerdict.REFERENCE_FAILED)
    if not overload.executed or overload.verdict in unknown:
        ElementTree.SubElement(case, "skipped", message=printable(overload.reason or overload.verdict.value))
        return "skipped"
    if overload.is_supported:
        return "passed"
    failed = ElementTree.SubElement(case, "failure", type=overload.verdict.value, message=printable(overload.reason))
    if overload.worst_case:
        failed.text = f"mpsmith replay '{printable(overload.worst_case)}'"
    return "failure"
