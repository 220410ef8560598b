"""Files of evidence that no machine collected: those of real devices are made up, for tests alone."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mpsmith.reports.evidence.files import write
from mpsmith.reports.evidence.schema import PREFLIGHT_STEPS, EvidenceFile

MAC: dict[str, Any] = {
    "chip": "Apple M3 Pro",
    "gpu_cores": 18,
    "system": "macOS",
    "release": "15.5",
    "build": "24F74",
    "machine": "arm64",
    "memory_gib": 36,
    "torch": "2.13.0",
    "python": "3.12.4",
}
LINUX: dict[str, Any] = {
    "chip": "x86_64",
    "system": "Linux",
    "release": "6.1",
    "machine": "x86_64",
    "torch": "2.13.0+cpu",
    "python": "3.12.4",
    "profile": "2.13.0",
}
DIGEST = "0123456789abcdef"


def evidence_data(
    overloads: dict[str, dict[str, dict[str, int]]] | None = None,
    *,
    simulated: bool = False,
    collected: str = "2026-01-02T03:04:05+00:00",
    kernels: list[dict[str, Any]] | None = None,
    **machine: Any,
) -> dict[str, Any]:
    """Plain data of evidence that is consistent: cases by verdict, of each overload and dtype; passing ones else.

    A verdict follows from the counts as long as all cases of a dtype have the same one.
    """
    given = overloads or {"aten::mode": {"float32": {"passed": 3}}}
    totals: dict[str, int] = {}
    failing: dict[str, list[dict[str, Any]]] = {}
    rows: dict[str, Any] = {}
    for name, dtypes in given.items():
        rows[name] = {"dispatch": "native", "dtypes": {}}
        for dtype, cases in dtypes.items():
            (first, *_) = cases
            rows[name]["dtypes"][dtype] = {"verdict": "native" if first == "passed" else first, "cases": cases}
            for verdict, number in cases.items():
                totals[verdict] = totals.get(verdict, 0) + number
                if verdict != "passed":
                    group = f"opinfo:{name.removeprefix('aten::')}:{dtype}"
                    alike = {"verdict": verdict, "message": f"says {verdict}", "positions": list(range(number))}
                    failing.setdefault(group, []).append(alike)
    return {
        "format": "mpsmith-evidence",
        "version": 1,
        "mpsmith": "0.1.0",
        "collected": collected,
        "simulated": simulated,
        "machine": (LINUX if simulated else MAC) | machine,
        "preflight": None if simulated else {"steps": dict.fromkeys(PREFLIGHT_STEPS, "works"), "seconds": 31.5},
        "audit": {
            "simulated": simulated,
            "samples": "quick",
            "complete": True,
            "executed": sum(totals.values()),
            "cases": totals,
            "overloads": rows,
            "failing": failing,
        },
        "kernels": kernels or [],
    }


def evidence(*arguments: Any, **named: Any) -> EvidenceFile:
    """The same as the model."""
    return EvidenceFile.model_validate(evidence_data(*arguments, **named))


def kernel_row(family: str, *operators: str, **fields: Any) -> dict[str, Any]:
    """What verifying a family of kernels showed, that it passes unless told otherwise."""
    row = {"family": family, "simulated": False, "source": DIGEST, "operators": list(operators), "cases": 3}
    return row | {"checks": ["numerics"], "dtypes": ["float32"]} | fields


MARKUP = "<img src=x onerror=alert(1)>"


def hostile_evidence() -> EvidenceFile:
    """Evidence that nothing speaks against and that has markup wherever a text is free."""
    data: dict[str, Any] = evidence_data(
        {"aten::mode": {"float32": {"wrong": 2}}}, chip=f"Apple {MARKUP}", release=f"15{MARKUP}", build=MARKUP
    )
    data["machine"] |= {"variables": {"PYTORCH_MPS_X": MARKUP}}
    data["audit"]["failing"]["opinfo:mode:float32"][0]["message"] = f"`{MARKUP}` </script> --> ]]>"
    data["audit"] |= {"samples": MARKUP, "ops": [MARKUP]}
    data["audit"]["overloads"]["aten::mode"]["through"] = [MARKUP]
    failed = {"failed": 1, "failures": [{"what": MARKUP, "reason": MARKUP}], "checks": [MARKUP]}
    ended = kernel_row("sort", "aten::sort", ended=MARKUP, untimed=MARKUP)
    data["kernels"] = [kernel_row("mode", "aten::mode", **failed), ended]
    return EvidenceFile.model_validate(data)


def written(folder: Path, content: EvidenceFile, name: str = "evidence.json.gz") -> Path:
    """A file that holds the evidence."""
    write(content, folder / name)
    return folder / name


NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
