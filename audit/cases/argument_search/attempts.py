"""In a worker process: tries calls of one overload until enough different ones were accepted.

The order is: recorded calls, calls of related overloads, changes to accepted calls, random arguments. Each step is
written to a journal, because any call may end the process.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Call = dict[str, Any]

WANTED = 4
ERRORS_KEPT = 3
NO_KERNEL = "Could not run '"


@dataclass
class Tried:
    """The result of trying one overload.

    Attributes:
        calls: the accepted calls.
        refused: calls that no backend's kernel could take, kept where the CPU has none.
        tried: how many calls were tried.
        errors: the CPU's refusals, the most telling first.
    """

    calls: list[Call] = field(default_factory=list)
    refused: list[Call] = field(default_factory=list)
    tried: int = 0
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Attempt:
    """The task of a worker.

    Attributes:
        name: the overload.
        calls_of: calls of it and of its neighbours, by overload.
        seed: of the search.
        avoided: marks of calls that ended a process, or whose result is undefined.
        journal: the file to which accepted calls are written as they are found.
    """

    name: str
    calls_of: Mapping[str, Sequence[Call]]
    journal: Path
    seed: int = 0
    avoided: frozenset[str] = frozenset()


def mark(call: Call) -> str:
    """A short hash that identifies the call."""
    import hashlib

    text = json.dumps([call["args"], call["kwargs"]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def beyond_mps(call: Call) -> str | None:
    """Why a call is useless on mps, or None."""
    text = json.dumps([call["args"], call["kwargs"]])
    wide = next((dtype for dtype in ("float64", "complex128") if f'"{dtype}"' in text), None)
    return f"accepted calls need {wide}, which mps does not have" if wide else None


class _Trial:
    def __init__(self, attempt: Attempt) -> None:
        from ..calls.invocation import SchemaCall

        self._call = SchemaCall(attempt.name)
        self._attempt = attempt
        self._journal = os.open(attempt.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.accepted: dict[str, Call] = {}
        self.unimplemented: dict[str, Call] = {}
        self.tried = 0
        self.errors: Counter[str] = Counter()

    def __call__(self, call: Call) -> str | None:
        from ....errors import one_line
        from ..calls.invocation import arguments_of
        from ..calls.recipes import signature, with_seeds

        if "_foreach_" in self._attempt.name:  # their lists of tensors are long
            call = with_seeds(call)
        if (needed := beyond_mps(call)) is not None:
            self.errors[needed] += 1
            return needed
        key = mark(call)
        if key in self._attempt.avoided:
            return "ends the process, or gives a result that means nothing"
        self._note({"trying": key})
        self.tried += 1
        try:
            args, kwargs = arguments_of(call)
            self._call(*args, **kwargs)
        except Exception as error:  # whatever the CPU refuses teaches what to try next
            refusal = one_line(error, 160)
            self.errors[refusal] += 1
            if isinstance(error, NotImplementedError) and refusal.startswith(NO_KERNEL):
                self.unimplemented.setdefault(signature([call["args"], call["kwargs"]]), call)
            return refusal
        difference = signature([call["args"], call["kwargs"]])
        if difference not in self.accepted:
            self.accepted[difference] = call
            self._note({"accepted": call})
        return None

    def enough(self) -> bool:
        return len(self.accepted) >= WANTED

    def _note(self, entry: dict[str, Any]) -> None:
        os.write(self._journal, json.dumps(entry).encode() + b"\n")

    def close(self) -> None:
        os.close(self._journal)


def attempt_overload(attempt: Attempt) -> Tried:
    """Find accepted calls of one overload. Raises AttributeError when this torch has no such overload."""
    import torch

    from .changed_calls import variations
    from .random_arguments import search

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    trial = _Trial(attempt)
    for call in _candidates(attempt):
        if trial.enough():
            break
        trial(call)
    telling = list(trial.errors)[:ERRORS_KEPT]
    for call in list(trial.accepted.values()):
        for other in variations(call, attempt.seed):
            if trial.enough():
                break
            trial(other)
    if not trial.accepted and trial.unimplemented:
        trial.close()
        return Tried([], list(trial.unimplemented.values())[:WANTED], trial.tried, telling)
    search(attempt.name, trial, trial.enough, attempt.seed)
    trial.close()
    frequent = [message for message, _ in trial.errors.most_common(ERRORS_KEPT)]
    errors = list(dict.fromkeys([*telling, *frequent]))[:ERRORS_KEPT]
    refused = [] if trial.accepted else list(trial.unimplemented.values())[:WANTED]
    return Tried(list(trial.accepted.values()), refused, trial.tried, errors)


def _candidates(attempt: Attempt) -> Iterator[Call]:
    from .related_overloads import derived_calls

    yield from attempt.calls_of.get(attempt.name, ())
    yield from derived_calls(attempt.name, attempt.calls_of)


def read_journal(journal: Path) -> tuple[list[Call], str | None, int]:
    """The calls that a crashed worker had accepted, the mark of its last call, and the number of tried calls."""
    accepted: list[Call] = []
    last: str | None = None
    tried = 0
    try:
        lines = journal.read_text().splitlines()
    except FileNotFoundError:
        return [], None, 0
    for line in lines:
        entry = json.loads(line)
        if "accepted" in entry:
            accepted.append(entry["accepted"])
        else:
            last, tried = entry["trying"], tried + 1
    return [call for call in accepted if mark(call) != last], last, tried
