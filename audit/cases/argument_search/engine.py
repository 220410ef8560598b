"""The argument search: finds calls of each overload that the CPU accepts, and drops those with undefined results.

Each call runs in a worker process, because an operator with arbitrary arguments may crash it. Overloads are searched in
small batches. Each batch is verified before the next begins, so an interrupt loses one batch.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ...model import time_limit
from ...model.hash_seed import same_hashes
from ...model.selection import DTYPES
from ..calls.recorded_calls import OverloadCalls, RecordedCalls
from .attempts import Attempt, Tried, attempt_overload, mark, read_journal
from .verification import Answer, CheckedContext, PlainContext, agree, answers, fill_fresh_memory, shapes_agree

Call = dict[str, Any]

BATCH = 48
SECONDS_PER_OVERLOAD = 60.0  # of processor time
CRASHES_FORGIVEN = 3
LARGEST_PROCESS = 4 << 30  # bytes: a call that asks for more is refused
RECORDED_DTYPES = ("float32", "complex64", "int64", "bool", "float16")
UNDEFINED = "accepted, but its result depends on uninitialised memory or it overwrites memory that is not its own"


@dataclass(frozen=True)
class Progress:
    """How far the search is: overloads done and in total, and the name of the step."""

    title: str
    done: int
    total: int


@dataclass(frozen=True)
class SearchedOverload:
    """An overload to search. `has_kernel`: mps has one, so a call that only the CPU refuses is not kept."""

    name: str
    has_kernel: bool = False


def search_calls(
    targets: Sequence[SearchedOverload],
    recorded_calls: RecordedCalls,
    workers: int,
    progress: Callable[[Progress], None],
    *,
    record: bool,
    candidates: Mapping[str, Sequence[Call]] | None = None,
    imports: Sequence[str] = (),
) -> Iterator[RecordedCalls]:
    """Search calls for the targets and add them to `recorded_calls`, which is yielded after each batch.

    Args:
        targets: the overloads to search; those with enough recorded calls are only verified again.
        recorded_calls: calls recorded before; all must fit the installed schemas.
        workers: how many processes try calls at a time; two more verify.
        progress: called after each batch.
        record: whether to record the samples of the OpInfos and ModuleInfos first.
        candidates: further calls to try, by overload: recorded with another schema, or written by hand.
        imports: packages that define operators.
    """
    with same_hashes(), _Search(workers, imports) as search:
        calls_of: dict[str, list[Call]] = {name: [*calls] for name, calls in (candidates or {}).items()}
        calls_of |= {name: r.calls for name, r in recorded_calls.overloads.items() if not r.refused}
        if record:
            for name, calls in search.record(progress).items():
                calls_of[name] = [*calls_of.get(name, []), *calls]
        still_open = list(targets)
        for title in ("searching", "searching from new calls"):
            for start in range(0, len(still_open), BATCH):
                batch = still_open[start : start + BATCH]
                for name, recorded in search.search_batch(batch, calls_of):
                    recorded_calls.overloads[name] = recorded
                    calls_of[name] = [] if recorded.refused else recorded.calls
                progress(Progress(title, min(start + BATCH, len(still_open)), len(still_open)))
                yield recorded_calls
            still_open = [t for t in still_open if not recorded_calls.overloads[t.name].enough]


class _Search:
    """Three pools: one that tries calls, and two that verify them, with and without a checked heap."""

    def __init__(self, workers: int, imports: Sequence[str]) -> None:
        arguments: dict[str, Any] = {"initializer": _prepare, "initargs": (tuple(imports),)}
        self._trying = ProcessPool(max_workers=workers, context=PlainContext(), **arguments)
        self._verifying = [
            ProcessPool(max_workers=1, context=context(), **arguments) for context in (PlainContext, CheckedContext)
        ]
        self._folder = tempfile.TemporaryDirectory(prefix="mpsmith-search-")
        self._files = 0
        self._unsound: dict[str, frozenset[str]] = {}

    def __enter__(self) -> _Search:
        return self

    def __exit__(self, *failure: object) -> None:
        for pool in (self._trying, *self._verifying):
            pool.stop()
            pool.join()
        self._folder.cleanup()

    def _file(self) -> Path:
        self._files += 1
        return Path(self._folder.name) / str(self._files)

    # ---- recording

    def record(self, progress: Callable[[Progress], None]) -> dict[str, list[Call]]:
        """The calls that the samples of OpInfos and ModuleInfos make, by overload."""
        keys = self._trying.schedule(_groups).result()
        chunks = [keys[i::40] for i in range(40)]
        calls_of: dict[str, list[Call]] = {}
        futures = [self._trying.schedule(_record_chunk, args=(chunk,)) for chunk in chunks]
        for number, future in enumerate(futures, 1):
            try:
                recorded = future.result()
            except ProcessExpired:  # one sample took its process along; what the others teach is enough
                recorded = {}
            for name, calls in recorded.items():
                calls_of.setdefault(name, []).extend(calls)
            progress(Progress("recording samples", number, len(chunks)))
        return calls_of

    # ---- one batch

    def search_batch(
        self, batch: Sequence[SearchedOverload], calls_of: Mapping[str, Sequence[Call]]
    ) -> list[tuple[str, OverloadCalls]]:
        """Try calls of each overload, then verify them."""
        attempts = {
            t.name: Attempt(
                t.name, _relevant(t.name, calls_of), self._file(), avoided=self._unsound.get(t.name, frozenset())
            )
            for t in batch
        }
        futures = {name: self._try(attempt) for name, attempt in attempts.items()}
        tried = {name: self._attempt_result(attempts[name], future) for name, future in futures.items()}
        verified = self._verify({name: outcome.calls for name, outcome in tried.items()})
        for name, outcome in tried.items():
            unsound = {mark(c) for i, c in enumerate(outcome.calls) if not verified[name][i, c["dtype"]]}
            self._unsound[name] = self._unsound.get(name, frozenset()) | unsound
        fingerprints = self._trying.schedule(_fingerprints, args=(list(tried),)).result()
        return [
            (t.name, replace(_overload_calls(tried[t.name], verified[t.name], t), schema=fingerprints[t.name]))
            for t in batch
        ]

    def _try(self, attempt: Attempt) -> Any:
        return self._trying.schedule(_attempt, args=(attempt,))

    def _attempt_result(self, attempt: Attempt, future: Any) -> Tried:
        """The result of an attempt. If a call ends the process, try again without that call."""
        saved: list[Call] = []
        crashes: list[str] = []
        tried = 0
        for seed in range(1, CRASHES_FORGIVEN + 1):
            try:
                outcome: Tried = future.result()
            except ProcessExpired as expired:
                accepted, last, count = read_journal(attempt.journal)
                saved, tried = [*saved, *accepted], tried + count
                too_long = time_limit.exceeded(expired.exitcode)
                crashes.append("takes too long" if too_long else f"ends the process: exit code {expired.exitcode}")
                calls_of = {**attempt.calls_of, attempt.name: [*saved, *attempt.calls_of.get(attempt.name, ())]}
                avoided = attempt.avoided | ({last} if last else set())
                attempt = replace(attempt, calls_of=calls_of, seed=seed, avoided=avoided, journal=self._file())
                future = self._try(attempt)
                continue
            except Exception as error:  # the overload cannot be called from Python at all
                return Tried([], [], 0, [f"{type(error).__name__}: {error}"])
            errors = list(dict.fromkeys([*crashes, *outcome.errors]))
            return Tried(outcome.calls, outcome.refused, tried + outcome.tried, errors)
        future.cancel()
        return Tried(saved, [], tried, list(dict.fromkeys(crashes)))

    # ---- verification

    def _verify(self, calls: Mapping[str, Sequence[Call]]) -> dict[str, dict[tuple[int, str], bool]]:
        """Whether the result of each call is defined: by overload, then by the call's position and dtype."""
        wanted = {
            name: [(i, d) for i, call in enumerate(given) for d in _dtypes(call)] for name, given in calls.items()
        }
        answered = []
        for pool in self._verifying:
            files = {name: self._file() for name in calls}
            futures = {n: _ask(pool, n, wanted[n], calls[n], files[n]) for n in calls if wanted[n]}
            answered.append((pool, files, futures))
        both = [
            {n: self._answers(pool, n, wanted[n], calls[n], files[n], f) for n, f in futures.items()}
            for pool, files, futures in answered
        ]
        return {
            name: {
                pair: _same(name, first, second)
                for pair, first, second in zip(pairs, *(b.get(name, []) for b in both), strict=True)
            }
            for name, pairs in wanted.items()
        }

    def _answers(
        self, pool: ProcessPool, name: str, pairs: Sequence[Any], calls: Sequence[Call], log: Path, future: Any
    ) -> list[Answer]:
        """One answer for each call. A call that ends the process is one; the rest runs in a new process."""
        given: list[Answer] = []
        for _ in range(CRASHES_FORGIVEN):
            try:
                return given + list(future.result())
            except ProcessExpired:
                # The answers before the crash are lost with the process; they are asked for again, one by one less.
                started = log.stat().st_size if log.exists() else 1
                before = pairs[len(given) : len(given) + max(0, started - 1)]
                given += self._once(pool, name, before, calls)
                given.append("ends the process")
                rest = pairs[len(given) :]
                if not rest:
                    return given
                log = self._file()
                future = _ask(pool, name, rest, calls, log)
            except Exception as error:
                return given + [f"{type(error).__name__}: {error}"] * (len(pairs) - len(given))
        future.cancel()
        return given + ["ends the process"] * (len(pairs) - len(given))

    def _once(self, pool: ProcessPool, name: str, pairs: Sequence[Any], calls: Sequence[Call]) -> list[Answer]:
        if not pairs:
            return []
        try:
            return list(_ask(pool, name, pairs, calls, self._file()).result())
        except ProcessExpired:
            return ["ends the process"] * len(pairs)


def _ask(pool: ProcessPool, name: str, pairs: Sequence[Any], calls: Sequence[Call], log: Path) -> Any:
    return pool.schedule(_answer, args=(name, list(pairs), list(calls), str(log)))


def _attempt(attempt: Attempt) -> Tried:
    time_limit.start(SECONDS_PER_OVERLOAD)
    try:
        return attempt_overload(attempt)
    finally:
        time_limit.stop()


def _answer(name: str, pairs: Sequence[tuple[int, str | None]], calls: Sequence[Call], log: str) -> list[Answer]:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    time_limit.start(SECONDS_PER_OVERLOAD)
    try:
        return answers(name, pairs, calls, descriptor)
    finally:
        time_limit.stop()
        os.close(descriptor)


def _dtypes(call: Call) -> list[str]:
    """The call's own dtype, and those that may stand in its place, if it occurs at all."""
    own = call["dtype"]
    if f'"{own}"' not in _text(call):
        return [own]
    return [own, *(dtype for dtype in DTYPES if dtype != own)]


def _text(call: Call) -> str:
    import json

    return json.dumps([call["args"], call["kwargs"]])


def _same(name: str, first: Answer, second: Answer) -> bool:
    from ...model.case import UNINITIALISED

    base = name.partition("::")[2].split(".")[0]
    uninitialised = base in UNINITIALISED or base.startswith(("empty", "new_empty", "_empty"))
    return shapes_agree(first, second) if uninitialised else agree(first, second)


def _overload_calls(tried: Tried, verified: Mapping[tuple[int, str], bool], target: SearchedOverload) -> OverloadCalls:
    """The calls whose results are defined in their own dtype, and the other dtypes in which each result is defined."""
    sound = [i for i, call in enumerate(tried.calls) if verified[i, call["dtype"]]]
    calls = [tried.calls[i] for i in sound]
    errors = tried.errors if len(sound) == len(tried.calls) else [UNDEFINED, *tried.errors]
    if not calls:
        refused = [] if target.has_kernel or tried.calls else tried.refused
        dtypes = ["float32"] if refused else []
        return OverloadCalls(refused, dtypes, refused=bool(refused), tried=tried.tried, errors=errors[:3])
    works = {d: [n for n, i in enumerate(sound) if verified.get((i, d))] for d in DTYPES}
    dtypes = [d for d in DTYPES if works[d]]
    left_out = {d: [n for n in range(len(calls)) if n not in works[d]] for d in dtypes}
    recorded = OverloadCalls(calls, dtypes, {d: without for d, without in left_out.items() if without})
    return recorded if recorded.enough else replace(recorded, tried=tried.tried, errors=errors[:3])


def _relevant(name: str, calls_of: Mapping[str, Sequence[Call]]) -> dict[str, Sequence[Call]]:
    from .related_overloads import stem

    return {other: calls for other, calls in calls_of.items() if stem(other) == stem(name)}


# ---- in the workers


def _prepare(imports: Iterable[str]) -> None:
    """Prepare a worker: limit its memory and time, discard its output and warnings, import what defines operators."""
    import importlib
    import resource
    import signal

    import torch

    from ..calls.cpu_kernels import register

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (LARGEST_PROCESS, hard))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    time_limit.prepare()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    fill_fresh_memory()
    torch.set_num_threads(1)
    register()
    for package in imports:
        with suppress(Exception):  # a pool would start a process whose preparation fails for ever
            importlib.import_module(package)


def _fingerprints(names: Iterable[str]) -> dict[str, str]:
    from ..calls.invocation import fingerprint

    def of(name: str) -> str:
        try:
            return fingerprint(name)
        except (AttributeError, RuntimeError):
            return ""

    return {name: of(name) for name in names}


def _groups() -> list[Any]:
    from ..sources.modules import ModuleSource
    from ..sources.opinfo import OpInfoSource

    everything = [*OpInfoSource().groups(), *ModuleSource().groups()]
    groups = [g for g in everything if g.dtype in RECORDED_DTYPES]
    by_name: dict[tuple[str, str], Any] = {}
    for group in sorted(groups, key=lambda g: RECORDED_DTYPES.index(g.dtype)):
        by_name.setdefault((group.operator, group.variant), group)
    return list(by_name.values())


def _record_chunk(keys: Iterable[Any]) -> dict[str, list[Call]]:
    from .samples import record

    return record(keys)
