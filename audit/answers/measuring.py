"""Writes `measured.tsv`, and of host code `host_work.tsv`: `python -m mpsmith.audit.answers.measuring audit.sqlite`."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import MpsmithError
from ...simulator.upstream.host_work import HostWork
from ..findings.audited_surface import audited_surface
from ..findings.explanations import explain
from ..findings.run_data import RunData, read_run
from ..model.group import dtype_of_case
from ..model.selection import dtype_position, is_narrowed
from ..model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, strongest
from ..releases.surface.overloads import Surface
from ..store.records import StoredCase
from ..store.store import Store
from .compositions import NO_PARTS, Composition
from .measured import FILE, HOST_WORK, MeasuredCalls, MeasuredNames, host_facts, write

# Sources whose cases are calls of the operator that their group names. The others provoke errors, write into out=,
# or call more than the operator.
SOURCES = frozenset(
    {
        *("opinfo", "samples without gradients", "layouts", "tensor layouts", "sizes", "special values"),
        *("modules", "module sizes", "module special values"),
        *("schema", "schema sizes", "schema special values"),
    }
)
# Where most calls have one of these, those that pass show that the device has a kernel.
_ON_THE_DEVICE = (CaseVerdict.DTYPE_GAP, CaseVerdict.WRONG)
_LONGEST = 140
_SHAPE = re.compile(r"\b(?:u?int|float|bfloat|complex|bool)\d*\[([\d, ]*)\]")


def has_empty_tensor(inputs: str) -> bool:
    """Whether some tensor of a described call has no elements: `float32[0, 3]`."""
    return any("0" in (size.strip() for size in shape.split(",")) for shape in _SHAPE.findall(inputs))


def refuses_arguments(case: StoredCase) -> bool:
    """Whether the device refuses the call in every dtype, and the CPU computes it: no result is wrong.

    False if it raises only for some values, such as NaN, or if a kernel failed on the simulated device.
    """
    raises = case.outcome.verdict is CaseVerdict.WRONG and case.outcome.message.startswith("raises ")
    return raises and "KernelFault" not in case.outcome.message and not case.group.source.endswith("special values")


class _Name:
    """The counts of one name.

    Calls whose arguments the device refuses are counted separately. They decide the verdict only if no call is right.
    """

    def __init__(self) -> None:
        self.by_dtype: defaultdict[str, Counter[CaseVerdict]] = defaultdict(Counter)
        self.refused: Counter[str] = Counter()
        self.refused_sizes: Counter[str] = Counter()
        self.grades: set[Grade] = set()
        self.worst: dict[CaseVerdict, tuple[str, str]] = {}
        self.without_kernel: Counter[str] = Counter()

    def add(self, case: StoredCase) -> None:
        verdict = case.outcome.verdict
        self.without_kernel.update({name.removeprefix("aten::") for name in case.outcome.fallbacks})
        dtype = dtype_of_case(case.group, case.inputs)
        counts = self.by_dtype[dtype]
        if refuses_arguments(case):
            (self.refused_sizes if case.group.source.endswith("sizes") else self.refused)[dtype] += 1
        else:
            counts[verdict] += 1
        self.grades.add(case.grade)
        if verdict is not CaseVerdict.PASSED:
            self.worst.setdefault(verdict, (case.label, _brief(case.outcome.message)))

    def measured(self) -> MeasuredCalls:
        prevailing: defaultdict[CaseVerdict, list[str]] = defaultdict(list)
        some: defaultdict[CaseVerdict, list[str]] = defaultdict(list)
        at_sizes: list[str] = []
        for dtype in sorted(self.by_dtype, key=dtype_position):
            cases = self.by_dtype[dtype]
            refused = Counter({CaseVerdict.DTYPE_GAP: self.refused[dtype]})
            sizes = Counter({CaseVerdict.DTYPE_GAP: self.refused_sizes[dtype]})
            most = _most(cases if cases[CaseVerdict.PASSED] else cases + refused + sizes)
            prevailing[most].append(dtype)
            for verdict in cases + refused:
                if verdict is not most and (verdict is not CaseVerdict.PASSED or most in _ON_THE_DEVICE):
                    some[verdict].append(dtype)
            if +sizes and CaseVerdict.DTYPE_GAP not in (most, *(cases + refused)):
                at_sizes.append(dtype)
        shown = next((self.worst[verdict] for verdict in CASE_SEVERITY if verdict in self.worst), ("", ""))
        grade = strongest(self.grades) or Grade.DISPATCH_ONLY
        calls = sum(
            (
                *self.refused.values(),
                *self.refused_sizes.values(),
                *(counts.total() for counts in self.by_dtype.values()),
            )
        )
        lacking = Composition(calls, dict(self.without_kernel)) if self.without_kernel else NO_PARTS
        return MeasuredCalls(_in_order(prevailing), _in_order(some), grade, *shown, lacking, tuple(at_sizes))


def _brief(message: str) -> str:
    """The first line of a message, without its difference from the float64 reference."""
    first = message.strip().partition("\n")[0].partition(", float64 ")[0].replace("\t", " ")
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST + 1].rpartition(' ')[0]}..."


def _most(cases: Mapping[CaseVerdict, int]) -> CaseVerdict:
    """The verdict of a name: passed if more than half of the cases pass, else the most frequent other one."""
    if 2 * cases.get(CaseVerdict.PASSED, 0) > sum(cases.values()):
        return CaseVerdict.PASSED
    others = [verdict for verdict in CASE_SEVERITY if verdict in cases and verdict is not CaseVerdict.PASSED]
    return max(others, key=lambda verdict: cases[verdict])


def _in_order(dtypes: Mapping[CaseVerdict, list[str]]) -> dict[CaseVerdict, tuple[str, ...]]:
    return {verdict: tuple(dtypes[verdict]) for verdict in reversed(CASE_SEVERITY) if verdict in dtypes}


def measured_names(cases: Iterable[StoredCase]) -> dict[str, MeasuredCalls]:
    """The results of these cases by the name that each calls."""
    names: defaultdict[str, _Name] = defaultdict(_Name)
    for case in cases:
        key = case.group
        counts = key.mode == "fallback" and key.source in SOURCES and case.outcome.verdict.executed
        if counts and not case.outcome.is_refusal and not has_empty_tensor(case.inputs):
            names[key.operator].add(case)
    return {name: calls.measured() for name, calls in names.items()}


def unknown_on_mac(data: RunData, surface: Surface) -> frozenset[str]:
    """The labels of cases that say nothing about a Mac, by the rule that explains them."""
    explanation, rule_of = explain(data, surface)
    return frozenset(label for label, rule in rule_of.items() if rule in explanation.unknown_on_mac)


def write_host_facts(release: str, work_by_name: Mapping[str, HostWork], path: Path = HOST_WORK) -> None:
    """Replace the lines of a release. Keep what people wrote about its calls."""
    facts = host_facts(release, path)
    title, *lines = path.read_text("utf-8").splitlines()
    lines = [line for line in lines if not line.startswith(f"{release}\t")]
    for name, work in work_by_name.items():
        if work.waits or work.computed_on_cpu:
            when = facts[name].when if name in facts else "in some calls"
            lines.append(
                "\t".join((release, name, f"{work.calls}\t{work.waits}", " ".join(work.computed_on_cpu), when))
            )
    path.write_text("\n".join([title, *sorted(lines)]) + "\n", "utf-8")


def known_work(release: str, path: Path = HOST_WORK) -> dict[str, HostWork]:
    """The facts that the file has for a release: a partial audit adds to them."""
    facts = host_facts(release, path).items()
    return {name: HostWork(int(f.calls), 0, int(f.waits), Counter(f.on_cpu.split())) for name, f in facts}


def main(store_path: Path) -> None:
    """Write the files from the newest audit of a store; from a part only what its host code did.

    Raises MpsmithError unless the audit is whole, or has host code.
    """
    with Store.open(store_path) as store:
        run = store.latest_run()
        host_code, is_part = run.environment.get("host_code"), is_narrowed(run.settings)
        if run.finished is None or (is_part and not host_code):
            raise MpsmithError(f"{store_path}: run {run.id} is not a whole audit (`make audit` makes one)")
        if host_code:
            recorded = known_work(host_code["source"]) if is_part else {}
            write_host_facts(host_code["source"], store.host_work(run.id) | recorded)
        if is_part:
            return
        unknown = unknown_on_mac(read_run(store, run, only_verdicts=True), audited_surface(run))
        names = measured_names(case for case in store.cases(run.id, "1") if case.label not in unknown)
    environment = run.environment
    release = str(environment.get("profile") or environment["torch"]).split("+")[0]
    write(MeasuredNames(release, bool(environment["simulated"]), names))
    print(f"{FILE}: {len(names)} names of torch {release}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
