"""An answer in words: the headline, the reason, since when, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache

from ..model.verdicts import CaseVerdict, Grade
from ..releases import data as release_data
from ..releases.surface.overloads import Dispatch
from .answer import Answer, audited_release
from .support import Support

HEADLINES = {
    Support.WORKS: "works",
    Support.PARTLY: "works in part",
    Support.NO: "does not run on the GPU",
    Support.UNKNOWN: "not known",
}
# What a verdict of some calls means, in the words of a sentence.
_VERDICTS = {
    CaseVerdict.PASSED: "right",
    CaseVerdict.FALLBACK: "runs on the CPU",
    CaseVerdict.MISSING: "no kernel",
    CaseVerdict.DTYPE_GAP: "refused",
    CaseVerdict.WRONG: "wrong",
    CaseVerdict.CRASH: "crashes",
    CaseVerdict.TIMEOUT: "does not finish",
}
# The same with several calls as the subject.
_OF_CALLS = {
    CaseVerdict.FALLBACK: "run on the CPU",
    CaseVerdict.MISSING: "have no kernel",
    CaseVerdict.DTYPE_GAP: "are refused",
    CaseVerdict.WRONG: "give wrong results",
    CaseVerdict.CRASH: "crash",
    CaseVerdict.TIMEOUT: "do not finish",
}
_GRADES = {
    Grade.REAL_DEVICE: "measured on a Mac",
    Grade.SHIPPED_KERNEL: "SIMULATED; the release's compiled Metal kernel computed the values, on the CPU",
    Grade.HOST_CODE: "SIMULATED; PyTorch's own host code computed the values, on the CPU",
    Grade.DISPATCH_ONLY: "SIMULATED; shows where calls run, nothing about values",
}
_NOWHERE = {Dispatch.MISSING_EVERYWHERE.value}
_FALLBACK = "it raises NotImplementedError, or runs on the CPU with PYTORCH_ENABLE_MPS_FALLBACK=1"
_LISTED = 3
# The oldest torch that `import mpsmith.kernels` works with.
OLDEST_WITH_KERNELS = (2, 7, 0)


@dataclass(frozen=True)
class Step:
    """One thing to do: a sentence, with a command or a link."""

    text: str
    command: str = ""
    link: str = ""

    def as_data(self) -> dict[str, str]:
        """The parts that are not empty, by name."""
        return {name: value for name, value in asdict(self).items() if value}


def headline(answer: Answer) -> str:
    """`works, with wrong results in some calls`."""
    some_wrong = answer.support is not Support.NO and (answer.wrong or CaseVerdict.WRONG in answer.some)
    return HEADLINES[answer.support] + (", with wrong results in some calls" if some_wrong else "")


def reason(answer: Answer) -> str:
    """Why, in one sentence."""
    if answer.unreachable:
        return answer.unreachable
    if answer.refusal:
        return f"It refuses every call: {answer.refusal}."
    if answer.lacking:
        return _what_is_lacking(answer)
    if answer.support is Support.UNKNOWN:
        return "No call of it was executed, and its declaration does not decide it."
    failing = next((verdict for verdict in answer.dtypes if verdict in _OF_CALLS), None)
    of_its_calls = f"of its calls in {listed(answer.dtypes[failing])} {_OF_CALLS[failing]}" if failing else ""
    if failing and CaseVerdict.PASSED not in answer.dtypes:
        return f"Most {of_its_calls}."
    how = "It is composed of operators that run on mps" if answer.composite else "It has its own kernel on mps"
    if answer.support is Support.PARTLY and failing:
        return f"{how}, but most {of_its_calls}."
    if answer.support is Support.PARTLY and CaseVerdict.DTYPE_GAP in answer.some:
        return f"{how}, but refuses some inputs that the CPU takes."
    return f"{how}."


def _dispatches(parts: Iterable[str], release: str) -> set[str]:
    data = release_data.load()
    return {data.dispatch(part, data.index(release)) for part in parts}


def _what_is_lacking(answer: Answer) -> str:
    own = answer.operator.removeprefix("aten::")
    parts = [part for part in answer.lacking if part.split(".")[0].removesuffix("_") != own]
    states = _dispatches(parts or answer.lacking, answer.release)
    is_in_all = max(answer.lacking.values()) > 0.99
    calls = "It calls" if is_in_all else "Its calls need" if answer.support is Support.NO else "Some calls need"
    named = f"{calls} {listed(parts, _LISTED)}"
    if states == {Dispatch.ALWAYS_FALLS_BACK.value}:
        on_cpu = f"{named}, which torch always runs on the CPU" if parts else "Torch always runs it on the CPU"
        return f"{on_cpu}, and copies the data both ways."
    if states == _NOWHERE:
        neither = "Neither mps nor the CPU has a kernel for it: it raises NotImplementedError."
        return f"{named}. {neither}" if parts else neither
    return f"{named}, which mps lacks: {_FALLBACK}." if parts else f"mps has no kernel for it: {_FALLBACK}."


def since(answer: Answer) -> str:
    """From which release on it runs on mps, in one sentence; "" if that is not known."""
    oldest = release_data.load().releases[0].release
    if answer.since:
        before = answer.since_or_before or answer.since == oldest
        return f"Runs on mps since torch {answer.since}{' or before' if before else ''}."
    if answer.upgrade:
        return f"Runs on mps since torch {answer.upgrade}."
    if answer.support in (Support.NO, Support.PARTLY) and (answer.lacking or answer.refusal):
        newest = release_data.load().releases[-1].release
        releases = (
            f"No release from {answer.release} to {newest} runs"
            if answer.release != newest
            else "The newest release does not run"
        )
        return f"{releases} all of it on mps."
    return ""


def dtypes(answer: Answer) -> str:
    """The dtypes by what their calls showed: `right in float32, float16; refused in complex64`."""
    if answer.lacking and _dispatches(answer.lacking, answer.release) == _NOWHERE:
        return ""  # a fallback to the CPU raises, too
    parts = [f"{_VERDICTS[verdict]} in {listed(names)}" for verdict, names in answer.dtypes.items()]
    parts += [f"{_VERDICTS[verdict]} in some calls of {listed(names)}" for verdict, names in answer.some.items()]
    return "; ".join(parts)


def evidence(answer: Answer) -> str:
    """The evidence for the answer."""
    if answer.grade is None:
        parts = f", composed as in torch {audited_release()}" if answer.composite else ""
        return f"what the macOS wheel of torch {answer.release} declares{parts}; nothing was run"
    return _GRADES[answer.grade]


def steps(answer: Answer) -> list[Step]:
    """Next steps, the best first; none if the operator works."""
    if answer.support is Support.UNKNOWN and not answer.unreachable:
        return [Step("Ask with your own call", f"mpsmith audit --ops {answer.name}")]
    if answer.unreachable:
        return []
    advice = replacements(answer)
    right = answer.dtypes.get(CaseVerdict.PASSED, ())
    refused = answer.dtypes.get(CaseVerdict.DTYPE_GAP, ())
    loses = "complex" in str(refused) and "complex" not in str(right)  # a real dtype has no imaginary part
    if refused and right and not loses and not answer.lacking:
        advice.append(Step(f"Convert first: it is right in {listed(right)}"))
    if answer.wrong or CaseVerdict.WRONG in (*answer.some, *answer.dtypes):
        fixed = [result.right_from for result in answer.wrong if result.right_from]
        if fixed and len(fixed) == len(answer.wrong):
            last = max(fixed, key=release_data.release_order)
            advice.append(Step(f"Upgrade to torch {last}, which is right", f"pip install --upgrade 'torch>={last}'"))
        advice.append(Step("Where the result matters, compute on the CPU: `f(x.cpu()).to('mps')`"))
    advice += [
        Step(f"Upstream report #{result.issue}: {result.summary.rstrip('.')}", link=result.link)
        for result in answer.wrong
        if result.link
    ]
    return advice


def replacements(answer: Answer) -> list[Step]:
    """The steps that replace the missing kernels, the best first; empty if no kernel is missing."""
    if not answer.lacking and not answer.refusal:
        return []
    advice = []
    if answer.upgrade:
        advice.append(Step(f"Upgrade to torch {answer.upgrade}", f"pip install --upgrade 'torch>={answer.upgrade}'"))
    finished = [kernel for kernel in answer.kernels if kernel.is_finished]
    covered = {kernel.operator for kernel in finished}
    missing = sorted({f"aten::{part.split('.')[0]}" for part in answer.lacking} - covered)
    if finished and release_data.release_order(answer.release) >= OLDEST_WITH_KERNELS:
        which = "" if not missing else f" for {listed(sorted(covered))}"
        advice.append(Step(f"Use mpsmith's kernel{which}: after `import torch`", "import mpsmith.kernels"))
    advice.append(Step("See where your program calls it", "mpsmith trace train.py"))
    gaps = [name for name in missing if is_a_gap(name, answer.release)]
    return [*advice, *(Step("Write the kernel", f"mpsmith scaffold {name}") for name in gaps)]


@cache
def gaps_of(release: str) -> frozenset[str]:
    """The operators (`aten::mode`) with an overload that users reach and that has no kernel on mps in a release."""
    data = release_data.load()
    position = data.index(release)
    return frozenset(
        f"aten::{overload.split('.')[0]}"
        for overload, history in data.overloads.items()
        if history.unreachable[position] == "-"
        and data.dispatch(overload, position) in ("missing", "always falls back")
    )


def is_a_gap(operator: str, release: str) -> bool:
    """Whether `mpsmith scaffold` starts a kernel for `aten::mode`: users reach an overload that has none."""
    return operator in gaps_of(release)


def listed(names: Iterable[str], limit: int = 12) -> str:
    """The names joined by commas; beyond `limit` only how many more."""
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def as_data(answer: Answer) -> dict[str, object]:
    """The answer for a program; docs/answers.md describes each key."""

    def by_word(dtypes_by_verdict: Mapping[CaseVerdict, tuple[str, ...]]) -> dict[str, list[str]]:
        return {verdict.value: list(names) for verdict, names in dtypes_by_verdict.items()}

    return {
        "version": 1,
        "name": answer.name,
        "operator": answer.operator or None,
        "overload": answer.overload or None,
        "torch": answer.release,
        "support": answer.support.value,
        "headline": headline(answer),
        "reason": reason(answer),
        "since": answer.since,
        "since_or_before": answer.since_or_before,
        "upgrade": answer.upgrade,
        "dtypes": by_word(answer.dtypes),
        "some": by_word(answer.some),
        "lacking": {f"aten::{part}": round(share, 3) for part, share in answer.lacking.items()},
        "wrong": [
            {key: getattr(result, key) or None for key in ("summary", "first", "last", "right_from", "issue")}
            | {"dtypes": list(result.dtypes)}
            for result in answer.wrong
        ],
        "kernels": [
            {"operator": kernel.operator, "family": kernel.family, "status": kernel.status} for kernel in answer.kernels
        ],
        "replay": answer.replay or None,
        "message": answer.message or None,
        "grade": answer.grade.value if answer.grade else None,
        "simulated": answer.simulated,
        "notes": list(answer.notes),
        "inside": [asdict(work) for work in answer.inside],
        "next": [step.as_data() for step in steps(answer)],
    }


def as_text(answer: Answer) -> str:
    """The answer for a terminal, ten lines at most."""
    rows = [
        ("why", reason(answer)),
        ("since", since(answer)),
        ("dtypes", dtypes(answer)),
        ("wrong", _wrong_line(answer)),
        ("host", "; ".join(map(str, answer.inside))),
        ("kernel", listed(f"{kernel.family} ({kernel.status}) for {kernel.operator}" for kernel in answer.kernels)),
        ("evidence", evidence(answer)),
        ("shown by", answer.message),
        ("replay", f"mpsmith replay '{answer.replay}', after an audit" if answer.replay else ""),
        ("but", listed(answer.notes, _LISTED)),
    ]
    shown = [(title, text) for title, text in rows if text]
    following = steps(answer)
    for step in following[: 9 - len(shown)]:
        shown.append(("next", f"{step.text}: {step.command or step.link}" if step.command or step.link else step.text))
    first = f"{answer.overload or answer.name} {headline(answer)}, torch {answer.release}"
    return "\n".join([first, *(f"  {title:<9} {text}" for title, text in shown)])


def _wrong_line(answer: Answer) -> str:
    if not answer.wrong:
        return ""
    first, *others = answer.wrong
    more = f" ({len(others)} more: --json)" if others else ""
    return f"{first.summary.rstrip('.')}, torch {first.releases}{more}"
