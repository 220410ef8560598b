"""Faults in the code generator of torch.compile, and the ordinary cases that have to find them.

Each fault is one changed line of torch/_inductor/codegen/mps.py. It resembles a defect that such generators had: a
wrong identity of a reduction, a lost mask, an index of too few bits, a missing barrier, a swapped operand. The changed
generator replaces the installed one, and ordinary cases of the auditor's sources run with it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mpsmith.audit.compiled.judging import compiled_call
from mpsmith.audit.compiled.overlay import Generator, overlaid
from mpsmith.audit.model.case import CaseSource, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples
from mpsmith.simulator.fallback_recorders import FallbackRecorder

SEED = 0


@dataclass(frozen=True)
class GeneratorFault:
    """One changed line of the code generator.

    Attributes:
        name: describes the fault.
        kind: the kind of fault.
        line: a part of the generator that occurs once.
        changed: its replacement.
        shown_by: the groups of cases to run, as "source:operator:dtype".
    """

    name: str
    kind: str
    line: str
    changed: str
    shown_by: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """The case that found a fault.

    Attributes:
        case: its label.
        verdict: its verdict.
    """

    case: str
    verdict: str


def installed_generator() -> Path:
    """The module of the installed Inductor that faults are injected into."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    return Path(torch.origin).parent / "_inductor" / "codegen" / "mps.py"


def faulty(fault: GeneratorFault, source: str) -> str:
    """The source of the generator with the fault, whose line occurs exactly once in it."""
    assert source.count(fault.line) == 1, fault.name
    return source.replace(fault.line, fault.changed)


@contextmanager
def with_fault(fault: GeneratorFault, folder: Path) -> Iterator[None]:
    """A context in which the installed code generator has this fault. The changed module is written to `folder`."""
    path = folder / "mps.py"
    path.write_text(faulty(fault, installed_generator().read_text("utf-8")), "utf-8")
    with overlaid(Generator(f"the fault {fault.name!r}", path)):
        yield


def find(
    fault: GeneratorFault, sources: Mapping[str, CaseSource], recorder: FallbackRecorder, folder: Path, most: int
) -> Found | None:
    """The first case that fails with the fault and is right without it; None if no group has one.

    Args:
        fault: the fault.
        sources: the auditor's sources by name.
        recorder: attributes fallbacks to operators.
        folder: for the changed module.
        most: the number of cases of a group to try.
    """
    for label in fault.shown_by:
        key = key_of(label, sources)
        cases = make_cases(sources[key.source], key, Samples.DEFAULT, SEED)
        for position, case in list(cases.items())[:most]:
            name = key.label_of(position)
            with with_fault(fault, folder):
                outcome = compiled_call(case, recorder, SEED, name)
            if outcome.verdict.executed and not outcome.verdict.is_right:
                without = compiled_call(case, recorder, SEED, name)
                if without.verdict.is_right:
                    return Found(name, outcome.verdict.value)
    return None


def key_of(label: str, sources: Mapping[str, CaseSource]) -> GroupKey:
    """The group of a label "source:operator:dtype"."""
    (key,) = (key for key in sources[label.partition(":")[0]].groups() if key.label == label)
    return key
