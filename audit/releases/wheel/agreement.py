"""Joins what a release declares with what its binary registers, and explains each difference by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..surface.overloads import Overload, Surface
from .binary import BinaryEvidence
from .registrations import Kind, Registration

DECLARED_KEYS = ("MPS", "SparseMPS", "SparseCsrMPS")


@dataclass(frozen=True)
class Discrepancy:
    """An overload (without namespace) for which only the yaml or only the binary has a kernel under a dispatch key.

    `registered` is what the binary registers, None for nothing. `rule` names the explanation, None if there is none.
    """

    overload: str
    key: str
    declared: bool
    registered: Kind | None
    rule: str | None

    @property
    def explanation(self) -> str:
        """The rule's sentence, or a description of an unexplained difference."""
        if self.rule is not None:
            return RULES_BY_NAME[self.rule].explanation
        if not self.declared:
            return "the yaml declares no kernel"
        instead = f"registers a {self.registered.value}" if self.registered else "has none"
        return f"the yaml declares a kernel and the binary {instead}"


@dataclass(frozen=True)
class Rule:
    """Why the binary registers something that the yaml does not declare."""

    name: str
    explanation: str
    matches: Callable[[Registration], bool]


RULES = (
    Rule(
        "hand-written fallback",
        "C++ written by hand registers the CPU fallback for it, so it falls back whatever the settings",
        lambda registration: registration.kind is Kind.FALLBACK and not registration.generated,
    ),
    Rule(
        "hand-written refusal",
        "C++ written by hand registers a function that only raises, so that no fallback hides a mistake",
        lambda registration: registration.kind is Kind.REFUSAL and not registration.generated,
    ),
    Rule(
        "hand-written kernel",
        "C++ written by hand registers a kernel for it beside the generated code",
        lambda registration: registration.kind is Kind.KERNEL and not registration.generated,
    ),
)

RULES_BY_NAME = {rule.name: rule for rule in RULES}


def differences(surface: Surface, evidence: BinaryEvidence) -> list[Discrepancy]:
    """Every overload for which only the yaml or only the binary has a kernel, sorted by key and name.

    A structured delegate counts as declared under MPS through its out overload. It does not inherit sparse keys.
    Autocast has no counterpart in the yaml and is not compared.
    """
    return [difference for key in DECLARED_KEYS for difference in _under_key(key, surface, evidence)]


def _under_key(key: str, surface: Surface, evidence: BinaryEvidence) -> Iterator[Discrepancy]:
    declared = {o.name.removeprefix("aten::") for o in surface.overloads if _is_declared(o, key)}
    registered = evidence.registered(key)
    for name in sorted(declared | set(registered)):
        registration = registered.get(name)
        kind = registration.kind if registration else None
        if kind is not (Kind.KERNEL if name in declared else None):
            yield Discrepancy(name, key, name in declared, kind, _rule_for(name in declared, registration))


def _is_declared(overload: Overload, key: str) -> bool:
    if key == "MPS":
        return overload.declared.has_kernel
    return overload.sparse if key == "SparseMPS" else overload.sparse_compressed


def _rule_for(declared: bool, registration: Registration | None) -> str | None:
    if registration is None or declared:
        return None
    return next((rule.name for rule in RULES if rule.matches(registration)), None)
