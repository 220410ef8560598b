"""Renders entries: JSON for programs, plain text for a terminal. Results of the simulated device are marked as such."""

from __future__ import annotations

from .files import Place
from .known_wrong import KnownReport
from .model import HUMAN_FIELDS, Device, Entry, Evidence, Measured, data_of


def as_json(entry: Entry, place: Place) -> dict[str, object]:
    """All of an entry as plain data.

    `status` is the current one, `status_from` is its source: "people", "mps", "simulated", or None when no
    status is known.
    """
    data: dict[str, object] = {
        "operator": entry.operator,
        "status": entry.current_status.value if entry.current_status else None,
        "status_from": status_source(entry),
    }
    data |= {name: getattr(entry, name) for name in HUMAN_FIELDS if name != "status"}
    data["evidence"] = {device: data_of(evidence) for device, evidence in entry.evidence.items()}
    data["measured"] = {
        device: {**data_of(measured), "grade": measured.grade_on(device)} for device, measured in entry.measured.items()
    }
    return data | {"file": str(place.path), "line": place.line}


def status_source(entry: Entry) -> str | None:
    """The source of the current status: "people", or the device whose measurement it follows; None without one."""
    if entry.status is not None:
        return "people"
    return entry.ranking_device if entry.current_status else None


def status_in_words(entry: Entry) -> str:
    """The current status, marked as simulated if it follows a simulated measurement."""
    if entry.current_status is None:
        return "not known"
    return entry.current_status.value + (" (simulated)" if status_source(entry) == "simulated" else "")


def measured_in_words(entry: Entry) -> str:
    """The verdict that counts, where it was measured and with which coverage; empty without a measurement."""
    device, measured = entry.ranking_device, entry.ranking_measurement
    if not device or not measured:
        return ""
    partly = f" ({' and '.join(measured.partly)} in some cases)" if measured.partly else ""
    return f"{measured.verdict}{partly}, {_where(device, measured)}"


def as_text(entry: Entry, place: Place) -> str:
    """All of an entry for a terminal, a line for each field that it has."""
    lines = [entry.operator, _line("status", f"{status_in_words(entry)}, {_origin(entry)}")]
    lines += [_line(name.replace("_", " "), value) for name in HUMAN_FIELDS[1:] if (value := getattr(entry, name))]
    for device, evidence in entry.evidence.items():
        lines += _evidence_lines(device, evidence)
    for device, measured in entry.measured.items():
        lines += _measured_lines(device, measured)
    return "\n".join([*lines, _line("file", str(place))])


def report_line(report: KnownReport) -> str:
    """What users reported upstream, on one line for a terminal."""
    return _line("known wrong", f"#{report.issue} {', '.join(_traits(report))}: {report.summary}")


def report_json(report: KnownReport) -> dict[str, object]:
    """A report as plain data."""
    return {
        "issue": report.issue,
        "url": report.url,
        "class": report.wrong_class,
        "summary": report.summary,
        "operators": list(report.operators),
        "first_affected": report.first_affected,
        "last_affected": report.last_affected,
        "cause": report.cause.model_dump(mode="json", exclude_none=True) if report.cause else None,
        "host_code": report.host_code.model_dump(mode="json", exclude_none=True) if report.host_code else None,
        "cases": len(report.cases),
    }


def _shown_by(report: KnownReport) -> str:
    """The releases and simulated versions of macOS that show it, "2.6.0 (macOS 14.0, 26)"; "" if no host code does."""
    run = report.host_code
    return (
        ", ".join(f"{release} (macOS {', '.join(versions)})" for release, versions in run.shown_by.items())
        if run
        else ""
    )


def _traits(report: KnownReport) -> list[str]:
    cause = report.cause
    return [
        report.wrong_class,
        *([f"torch {report.affected}"] if report.affected else []),
        *([cause.kernel or cause.part] if cause else []),
        *([f"shown by the host code of {shown}"] if (shown := _shown_by(report)) else []),
    ]


def _origin(entry: Entry) -> str:
    match status_source(entry):
        case None:
            return "not measured" if not entry.measured else "the measurement is no evidence"
        case "people":
            return "set by people"
        case _:
            return "as measured"


def _line(name: str, value: str, indent: int = 2) -> str:
    first, *more = value.splitlines() or [""]
    margin = " " * (indent + 14)
    return "\n".join([f"{' ' * indent}{name:<13} {first}", *(margin + line for line in more)])


def _where(device: Device, measured: Measured) -> str:
    grade = measured.grade_on(device)
    graded = f", {grade}" if grade else ""
    if device == "mps":
        return f"on mps, torch {measured.torch}{graded}"
    return f"simulated, coverage of torch {measured.release}{graded}"


def _evidence_lines(device: Device, evidence: Evidence) -> list[str]:
    where = "simulated" if device == "simulated" else "on mps"
    lines = [
        _line("verified", f"{where}, torch {evidence.torch}, sources {evidence.source}"),
        _line("checks", ", ".join(evidence.checks), 4),
    ]
    return [*lines, _line("dtypes", ", ".join(evidence.dtypes), 4)] if evidence.dtypes else lines


def _measured_lines(device: Device, measured: Measured) -> list[str]:
    lines = [_line("measured", f"{measured.verdict}, {_where(device, measured)}")]
    if measured.reason:
        lines.append(_line("reason", measured.reason, 4))
    width = max((len(overload) for overload in measured.overloads), default=0)
    lines += [f"    {overload:<{width}}  {dispatch}" for overload, dispatch in measured.overloads.items()]
    lines += [_line(verdict, ", ".join(names), 4) for verdict, names in measured.dtypes.items()]
    graded = {"shipped kernel": measured.shipped_kernel, "host code": measured.host_code}
    lines += [_line(grade, ", ".join(names), 4) for grade, names in graded.items() if names]
    compiled = "; ".join(f"{word}: {', '.join(names)}" for word, names in measured.compiled.items())
    return [*lines, _line("compiled", compiled, 4)] if compiled else lines
