"""JUnit XML: for an audit, a test for each executed overload, which fails if mps does not do what the CPU does."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from ..audit.findings.results import AuditSummary, OverloadSummary
from ..audit.model.verdicts import OverloadVerdict
from ..errors import printable
from .wording import simulated_note


def render(summary: AuditSummary) -> str:
    """The XML. An overload that was not executed is skipped with its reason: it is never a pass."""
    return document("mpsmith audit", map(_test_of, summary.overloads), simulated_note(summary))


def document(name: str, tests: Iterable[ElementTree.Element], simulated: str) -> str:
    """A suite of tests. `simulated`: the note about a simulated device, else empty."""
    suite = ElementTree.Element("testsuite", name=name)
    if simulated:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="simulated", value=simulated)
    suite.extend(tests)
    for key, path in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        suite.set(key, str(len(suite.findall(path))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def case_element(
    group: str, name: str, *, failure: str = "", skipped: str = "", reason: str = ""
) -> ElementTree.Element:
    """A test, which passed unless `failure` has a kind of failure, or `skipped` a reason."""
    test = ElementTree.Element("testcase", classname=group, name=printable(name))
    if failure:
        ElementTree.SubElement(test, "failure", type=failure, message=printable(reason))
    elif skipped:
        ElementTree.SubElement(test, "skipped", message=printable(skipped))
    return test


def _test_of(overload: OverloadSummary) -> ElementTree.Element:
    unknown = (OverloadVerdict.UNREACHABLE, OverloadVerdict.REFERENCE_FAILED)
    verdict, reason = overload.verdict.value, overload.reason
    if not overload.executed or overload.verdict in unknown:
        return case_element(overload.operator, overload.name, skipped=reason or verdict)
    failure = "" if overload.is_supported else verdict
    test = case_element(overload.operator, overload.name, failure=failure, reason=reason)
    if failure and overload.worst_case:
        test[0].text = f"mpsmith replay '{printable(overload.worst_case)}'"
    return test
