"""Which modules decide, and the tests that hold each: a module of the right column meets no other tests."""

from __future__ import annotations

JUDGING = ["tests/unit/audit/judging"]
FINDINGS = ["tests/unit/audit/findings"]

ROOMS: dict[str, dict[str, list[str]]] = {
    "judging": {
        "audit/judging/agreement.py": JUDGING,
        "audit/judging/compare.py": JUDGING,
        "audit/judging/distributions.py": JUDGING,
        "audit/judging/execution.py": JUDGING,
        "audit/judging/fallbacks.py": JUDGING,
        "audit/judging/judge.py": JUDGING,
        "audit/judging/reference.py": JUDGING,
        "audit/judging/transfer.py": JUDGING,
        "audit/judging/witness.py": JUDGING,
    },
    "evidence": {
        "audit/findings/attribution.py": FINDINGS,
        "audit/findings/evidence.py": FINDINGS,
        "audit/findings/explanations.py": FINDINGS,
        "audit/findings/rules.py": FINDINGS,
        "audit/findings/summary.py": FINDINGS,
    },
}
