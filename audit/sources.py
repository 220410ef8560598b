"""The case sources of an audit: torch's OpInfos, and those of packages that the user names."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from .cases import CaseSource
from .opinfo_source import OpInfoSource


def case_sources(imports: Sequence[str]) -> tuple[dict[str, CaseSource], list[str]]:
    """All sources by name, and one line for each package of `imports` that could not be used."""
    sources: list[CaseSource] = [OpInfoSource()]
    problems: list[str] = []
    for package in imports:
        try:
            module = importlib.import_module(package)
        except Exception as error:  # a foreign package may raise anything; it must not stop the audit
            problems.append(f"{package} cannot be imported: {type(error).__name__}: {error}")
            continue
        sources.extend(getattr(module, "mpsmith_case_sources", ()))
    return {source.name: source for source in sources}, problems
