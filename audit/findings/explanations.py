"""Explains non-passes by named rules, and lists the non-passes without a rule.

A rule explains and never acquits: the case keeps its verdict, and its overload too, unless the rule says that what a
Mac does in such a case is not known. What no rule explains is what somebody has to look at.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..model.verdicts import CASE_SEVERITY, ROUNDING, TOGETHER, CaseVerdict, Grade, strongest, without_numbers
from ..releases.surface.overloads import Surface
from ..store.records import Run, StoredCase
from .attribution import SourceEntry
from .evidence import in_order_of_severity, lacks_kernel
from .rules.loading import all_rules
from .rules.rule import ExplainingRule
from .run_data import RunData


@dataclass(frozen=True)
class RuleUse:
    """How often a rule explained a case: by verdict, in which entries, and the first case by its label.

    `unknown_on_mac`: its cases are evidence about no overload.
    """

    name: str
    reason: str
    holds_on: str
    upstream: str
    cases: Mapping[CaseVerdict, int]
    entries: tuple[str, ...]
    example: str
    unknown_on_mac: bool = False

    @property
    def total(self) -> int:
        """Cases of all verdicts together."""
        return sum(self.cases.values())


@dataclass(frozen=True)
class Unexplained:
    """Cases of one entry that no rule explains and that say the same but for numbers.

    `example` is the label of the first of them, `grade` the strongest of theirs; None if none was executed.
    """

    source: str
    entry: str
    verdict: CaseVerdict
    stage: str
    message: str
    dtypes: tuple[str, ...]
    cases: int
    example: str
    grade: Grade | None = None


@dataclass(frozen=True)
class Explanation:
    """The rules that explain the non-passes of a run.

    Attributes:
        non_passes: cases that did not pass, skipped ones and failed references included.
        rules: the rules that explained a case, the most used first.
        unexplained: what no rule explains, the most severe first.
        stale: rules that hold on this device and explained nothing; known of a full run alone.
    """

    non_passes: int = 0
    rules: tuple[RuleUse, ...] = ()
    unexplained: tuple[Unexplained, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def explained(self) -> int:
        """Cases that a rule explains."""
        return sum(rule.total for rule in self.rules)

    @property
    def unknown_on_mac(self) -> frozenset[str]:
        """The rules whose cases are evidence about no overload."""
        return frozenset(rule.name for rule in self.rules if rule.unknown_on_mac)

    @property
    def unexplained_cases(self) -> int:
        """Cases that no rule explains."""
        return self.non_passes - self.explained

    @property
    def sentence(self) -> str:
        """For people: "1,234 non-passes: 1,230 explained by 12 rules, 4 unexplained"."""
        rules = f"{len(self.rules)} rule" if len(self.rules) == 1 else f"{len(self.rules)} rules"
        non_passes = "1 non-pass" if self.non_passes == 1 else f"{self.non_passes:,} non-passes"
        text = f"{non_passes}: {self.explained:,} explained by {rules}"
        return f"{text}, {self.unexplained_cases:,} unexplained"


class Explainer:
    """Finds the rule that explains a case.

    Args:
        surface: the overloads that exist, for rules about operators without a kernel.
        simulated: the device was the simulated one; else the rules about it do not hold.
        shipped: the release whose kernels it launched, if any; else the rules about them do not hold.
        imports: the packages that were imported first; rules about others do not hold.
        rules: the first that matches explains; by default those of the registry.
    """

    def __init__(
        self,
        surface: Surface,
        *,
        simulated: bool,
        shipped: str | None = None,
        imports: Sequence[str] = (),
        rules: Sequence[ExplainingRule] | None = None,
    ) -> None:
        self._surface = surface
        self._by_verdict: defaultdict[CaseVerdict, list[tuple[ExplainingRule, re.Pattern[str]]]] = defaultdict(list)
        for rule in all_rules() if rules is None else rules:
            on_device = rule.holds_on != "real" if simulated else rule.holds_on != "simulated"
            imported = not rule.imported or rule.imported in imports
            if on_device and imported and (not rule.shipped or _matches(shipped, rule.shipped)):
                for verdict in rule.verdicts:
                    self._by_verdict[verdict].append((rule, re.compile(rule.message)))
        self.rules = tuple(dict.fromkeys(rule for listed in self._by_verdict.values() for rule, _ in listed))
        self._kernelless: dict[str, bool] = {}
        self._of_entry: dict[tuple[str, str, CaseVerdict], list[tuple[ExplainingRule, re.Pattern[str]]]] = {}

    def rule_for(self, case: StoredCase) -> ExplainingRule | None:
        """The rule that explains why the case did not pass, or None."""
        group, verdict = case.group, case.outcome.verdict
        rules = self._of_entry.get((group.operator, group.variant, verdict))
        if rules is None:  # most rules are for other operators
            name = SourceEntry.of(group).name
            rules = [
                candidate for candidate in self._by_verdict[verdict] if _matches(name, candidate[0].operators or ("*",))
            ]
            self._of_entry[group.operator, group.variant, verdict] = rules
        matching = (
            rule for rule, message in rules if message.search(case.outcome.message) and self._applies(rule, case)
        )
        return next((rule for rule in matching if self._is_predicted(rule, case, rules)), None)

    def _is_predicted(
        self, rule: ExplainingRule, case: StoredCase, rules: Sequence[tuple[ExplainingRule, re.Pattern[str]]]
    ) -> bool:
        """Whether the rule's model predicts every differing element, alone or with the models of other matching rules.

        Kernels of the backward are not recorded if the forward differs already, so those of the others are not checked.
        """
        if not rule.prediction or rule.prediction in case.predictions:
            return True
        sets = [names for fitting in case.predictions if rule.prediction in (names := set(fitting.split(TOGETHER)))]
        if not sets:
            return False
        hold = {other.prediction for other, _ in rules if self._applies(other, case, also_kernels=False)}
        return any(together <= hold for together in sets)

    def _applies(self, rule: ExplainingRule, case: StoredCase, *, also_kernels: bool = True) -> bool:
        group, outcome = case.group, case.outcome
        if (rule.sources and group.source not in rule.sources) or (rule.dtypes and group.dtype not in rule.dtypes):
            return False
        if rule.host_code and case.grade is not Grade.HOST_CODE:
            return False
        if rule.stages and outcome.stage not in rule.stages:
            return False
        if rule.inputs and re.search(rule.inputs, case.inputs) is None:
            return False
        if rule.arguments and not any(re.search(rule.arguments, text) for text in (case.inputs, case.fault_inputs)):
            return False
        unrecorded = not also_kernels and case.grade is Grade.HOST_CODE
        if rule.shipped and not case.kernels and not unrecorded:
            return False
        if also_kernels and rule.kernels and not any(_matches(kernel, rule.kernels) for kernel in case.kernels):
            return False
        if rule.at_most is not None and case.predictions.get(ROUNDING, math.inf) > rule.at_most:
            return False
        return not rule.without_kernel or (bool(outcome.fallbacks) and all(map(self._has_no_kernel, outcome.fallbacks)))

    def _has_no_kernel(self, name: str) -> bool:
        if name not in self._kernelless:
            overload = self._surface.by_name.get(name)
            elsewhere = overload is None and not name.startswith("aten::")  # a package's own operator: none of torch's
            self._kernelless[name] = elsewhere or (overload is not None and lacks_kernel(overload))
        return self._kernelless[name]


def _matches(name: str | None, patterns: Sequence[str]) -> bool:
    return name is not None and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


@dataclass
class _Use:
    cases: Counter[CaseVerdict] = field(default_factory=Counter)
    entries: set[str] = field(default_factory=set)
    example: str = ""


def explainer_of(run: Run, surface: Surface, rules: Sequence[ExplainingRule] | None = None) -> Explainer:
    """The explainer of a run: the rules for its kind of device, and the overloads of its surface."""
    simulated = bool(run.environment.get("simulated", False))
    imports = run.settings.get("imports", ())
    shipped = run.environment.get("shipped") or run.environment.get("host_code", {}).get("kernels")
    return Explainer(surface, simulated=simulated, shipped=shipped, imports=imports, rules=rules)


def explain(
    data: RunData, surface: Surface, rules: Sequence[ExplainingRule] | None = None
) -> tuple[Explanation, Mapping[str, str]]:
    """Find the rule that explains each non-pass of a run, and list those without a rule.

    Args:
        data: the run.
        surface: the overloads of the audited torch.
        rules: the first that matches explains; by default those of the registry.

    Returns:
        The explanation of the run, and the name of the rule that explains a case, by the case's label.
    """
    explainer = explainer_of(data.run, surface, rules)
    used: dict[ExplainingRule, _Use] = {}
    by_case: dict[str, str] = {}
    left: dict[tuple[str, str, CaseVerdict, str, str], Unexplained] = {}
    non_passes = data.non_passes
    for case in non_passes:
        rule = explainer.rule_for(case)
        if rule is None:
            _add(left, case)
            continue
        by_case[case.label] = rule.name
        use = used.setdefault(rule, _Use(example=case.label))
        use.cases[case.outcome.verdict] += 1
        use.entries.add(SourceEntry.of(case.group).name)
    stale = sorted(rule.name for rule in explainer.rules if rule not in used and not rule.never_stale)
    explanation = Explanation(
        non_passes=len(non_passes),
        rules=tuple(
            sorted(
                (_rule_use(rule, use, simulated=data.run.simulated) for rule, use in used.items()),
                key=lambda use: (-use.total, use.name),
            )
        ),
        unexplained=tuple(
            sorted(left.values(), key=lambda non_pass: (CASE_SEVERITY.index(non_pass.verdict), non_pass.entry))
        ),
        stale=tuple(stale) if data.is_full else (),
    )
    return explanation, by_case


def _rule_use(rule: ExplainingRule, use: _Use, *, simulated: bool) -> RuleUse:
    cases, entries = in_order_of_severity(use.cases), tuple(sorted(use.entries))
    of_rule = (rule.name, rule.reason, rule.holds_on, rule.upstream)
    return RuleUse(*of_rule, cases, entries, use.example, rule.unknown_on_mac and simulated)


def _add(left: dict[tuple[str, str, CaseVerdict, str, str], Unexplained], case: StoredCase) -> None:
    outcome, entry = case.outcome, SourceEntry.of(case.group).name
    said = outcome.message or ", ".join(outcome.fallbacks)
    key = (case.group.source, entry, outcome.verdict, outcome.stage, without_numbers(said))
    existing = left.get(key)
    if existing is None:
        where = (case.group.source, entry, outcome.verdict, outcome.stage, said)
        grade = case.grade if outcome.verdict.executed else None
        left[key] = Unexplained(*where, (case.group.dtype,), 1, case.label, grade)
        return
    dtypes = tuple(dict.fromkeys((*existing.dtypes, case.group.dtype)))
    grade = strongest((existing.grade, case.grade)) if outcome.verdict.executed else None
    left[key] = replace(existing, dtypes=dtypes, cases=existing.cases + 1, grade=grade)
