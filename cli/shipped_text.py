"""The texts of `mpsmith shipped`."""

from __future__ import annotations

from ..audit.shipped.finding_result import FindingResult


def found_line(result: FindingResult) -> str:
    """The result of one finding, on one line."""
    if result.is_right:
        return f"right      {result.name}"
    if not result.is_wrong:
        return f"not tried  {result.name}: {'; '.join(result.stood_in) or result.message or result.verdict.value}"
    place = result.place
    values = f"{place.given}, CPU {place.expected}" if place else result.message
    ulp_sensitivity = f" [{result.ulp_sensitivity.value}]" if result.ulp_sensitivity else ""
    return f"WRONG      {result.name}: {values}{ulp_sensitivity} ({', '.join(result.kernels)})"
