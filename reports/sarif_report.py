"""SARIF 2.1.0, for services that show findings: for an audit, a result for each overload that does not work on mps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from .. import __version__
from ..audit.findings.results import AuditSummary, OverloadSummary
from ..audit.model.verdicts import OverloadVerdict
from .wording import MEANING, simulated_note

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ERRORS = (OverloadVerdict.WRONG, OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT)


def render(summary: AuditSummary) -> str:
    """The JSON text. Each verdict is a rule; an overload has no line of a source, so it is a logical location."""
    rules = {verdict.value: MEANING[verdict] for verdict in OverloadVerdict if not verdict.is_support}
    results = [_result(overload) for overload in summary.overloads if overload.executed and not overload.is_supported]
    return document(rules, results, simulated_note(summary))


def document(rules: Mapping[str, str], results: Iterable[Mapping[str, object]], simulated: str) -> str:
    """One run. `rules`: the meaning of each rule. `simulated`: the note about a simulated device, else empty."""
    described = [{"id": name, "shortDescription": {"text": meaning}} for name, meaning in rules.items()]
    run = {
        "tool": {"driver": {"name": "mpsmith", "version": __version__, "rules": described}},
        "results": list(results),
        "properties": {"simulated": bool(simulated)} | ({"note": simulated} if simulated else {}),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(overload: OverloadSummary) -> dict[str, object]:
    """An overload that works in most cases and breaks in some has the rule of what broke."""
    rule = overload.breakages[0].verdict.value if overload.verdict.is_support else overload.verdict.value
    level = "error" if overload.verdict in _ERRORS or overload.breakages else "warning"
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": f"{overload.name}: {overload.reason or rule}"},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": overload.name, "kind": "function"}]}],
    }
