"""Where cases come from: torch's OpInfos and ModuleInfos, what is derived from them, and packages of the user."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ..calls.foreign import registered_operators
from ..cases import CaseSource
from .errors import ErrorSource
from .forms import FormSource
from .known_wrong import KnownWrongSource
from .large import LargeKnownWrongSource, LargeSource
from .layouts import LayoutSource
from .modules import ModuleSource
from .opinfo import OpInfoSource
from .random import RandomSource
from .schema import SchemaSource
from .sizes import SizeSource
from .special_values import SpecialValueSource


def case_sources(imports: Sequence[str]) -> tuple[dict[str, CaseSource], list[str]]:
    """All sources by name, and one line for each package of `imports` that could not be used.

    A package offers sources of its own as a list `mpsmith_case_sources`. For the operators that it defines, calls are
    made from their schemas.
    """
    before = registered_operators() if imports else frozenset()
    offered: list[CaseSource] = []
    imported: list[str] = []
    problems: list[str] = []
    for package in imports:
        try:
            module = importlib.import_module(package)
        except Exception as error:  # a foreign package may raise anything; it must not stop the audit
            problems.append(f"{package} cannot be imported: {type(error).__name__}: {error}")
            continue
        imported.append(package)
        for source in getattr(module, "mpsmith_case_sources", ()):
            if isinstance(source, CaseSource):
                offered.append(source)
            else:
                problems.append(f"{package} offers {source!r}, which is no mpsmith.audit.cases.CaseSource")
    defined = sorted(registered_operators() - before) if imports else []
    opinfos = OpInfoSource()
    sources: list[CaseSource] = [
        KnownWrongSource(),  # first: a bug that is back is known before anything else
        opinfos,
        LayoutSource(opinfos),
        SpecialValueSource(opinfos),
        FormSource(opinfos),
        ErrorSource(opinfos),
        SizeSource(opinfos),
        RandomSource(opinfos),
        ModuleSource(),
        SchemaSource(packages=imported, foreign=defined),
        LargeSource(),
        LargeKnownWrongSource(),
    ]
    sources.extend(offered)
    return {source.name: source for source in sources}, problems
