"""The audits that a site was made from, as data files; the browser compares the two that the page's address names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ...audit.findings.overload_verdict import SEVERITY
from ...audit.findings.results import AuditSummary
from ...cache import fingerprint
from ..html_templates import data_script

FOLDER = "data/audits"
INDEX = "data/audits.js"


def name_of(summary: AuditSummary) -> str:
    """The name of an audit: its torch, packages and cases, and a key of the verdicts; equal for equal results."""
    torch = summary.run.environment.get("torch", "unknown")
    key = fingerprint(json.dumps(data_of(summary)))[:8]
    simulated = "_SIMULATED" if summary.run.simulated else ""
    packages = "".join(f"_with_{package}" for package in summary.run.settings.get("imports", ()))
    return re.sub(r"[^\w.+-]", "-", f"torch_{torch}{packages}_{summary.run.executed}_cases_{key}{simulated}")


def data_of(summary: AuditSummary) -> dict[str, Any]:
    """The verdict of each executed overload, and by dtype; a digit each, "-" for a dtype without evidence."""
    rows = [o for o in summary.overloads if o.executed]

    def digits(dtypes: Any) -> str:
        return "".join(str(SEVERITY.index(dtypes[d].verdict)) if d in dtypes else "-" for d in summary.dtypes)

    return {
        "dtypes": list(summary.dtypes),
        "verdicts": [verdict.value for verdict in SEVERITY],
        "names": [o.name for o in rows],
        "rows": [f"{SEVERITY.index(o.verdict)}{digits(o.dtypes)}" for o in rows],
    }


def data_files(*audits: AuditSummary) -> dict[str, str]:
    """The data files of these audits, by path."""
    return {
        f"{FOLDER}/{(name := name_of(summary))}.js": data_script(f"audits/{name}", data_of(summary))
        for summary in audits
    }


def index(folder: Path, *own: str) -> str:
    """The data file with the names of all audits in the folder of a site. `own`: paths of new ones, which come last."""
    index_file = folder / INDEX
    before = re.findall(r'"([^"]+)"', index_file.read_text("utf-8").partition("[")[2]) if index_file.is_file() else []
    names = [Path(path).name.removesuffix(".js") for path in own]
    kept = [name for name in before if name not in names and (folder / FOLDER / f"{name}.js").is_file()]
    return data_script("audits", kept + names)
