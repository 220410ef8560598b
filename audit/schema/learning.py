"""Builds the memory: records OpInfo samples, derives from neighbours, searches for the rest; all on the CPU.

Each step runs in worker processes, because an operator that is called with arbitrary arguments may take its process
with it; then the overload is remembered with that as its error.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from pebble import ProcessExpired, ProcessPool

from .memory import Memory, Remembered

Call = dict[str, Any]
WANTED = 4
SECONDS_PER_OVERLOAD = 60.0
RECORDED_DTYPES = ("float32", "complex64", "int64", "bool", "float16")


@dataclass(frozen=True)
class Tried:
    """What a worker found for one overload."""

    calls: list[Call]
    dtypes: list[str]
    tried: int
    errors: list[str]


def learn(workers: int, say: Callable[[str], None]) -> Memory:
    """Learn calls for every reachable overload of the installed torch."""
    from importlib.metadata import version

    from ..surface import installed_surface

    names = [overload.name for overload in installed_surface().overloads if overload.reachable]
    context = get_context("spawn")
    with ProcessPool(max_workers=workers, context=context, initializer=_quietly) as pool:
        known = _record(pool, say)
        say(f"recorded calls of {len(known):,} overloads")
        memory = Memory(version("torch").split("+")[0], {})
        for round_number in (1, 2):  # what the first round derives are neighbours for the second
            open_names = [n for n in names if len(memory.overloads.get(n, Remembered()).calls) < WANTED]
            tasks = {
                n: pool.schedule(_try, args=(n, _relevant(n, known)), timeout=SECONDS_PER_OVERLOAD) for n in open_names
            }
            for name, future in tasks.items():
                tried = _result(future)
                memory.overloads[name] = Remembered(tried.calls, tried.dtypes, tried.tried, tried.errors)
                if tried.calls:
                    known[name] = tried.calls
            enough = sum(len(r.calls) >= WANTED for r in memory.overloads.values())
            say(f"round {round_number}: {enough:,} of {len(names):,} overloads have {WANTED} accepted calls")
    return memory


def _record(pool: ProcessPool, say: Callable[[str], None]) -> dict[str, list[Call]]:
    keys = pool.schedule(_groups).result()
    chunks = [keys[i::40] for i in range(40)]
    known: dict[str, list[Call]] = {}
    for future in [pool.schedule(_record_chunk, args=(chunk,)) for chunk in chunks]:
        try:
            found = future.result()
        except ProcessExpired as expired:
            say(f"warning: a recording process died ({expired.exitcode}), its samples are left out")
            continue
        for name, calls in found.items():
            kept = known.setdefault(name, [])
            kept.extend(calls[: max(0, WANTED + 1 - len(kept))])
    return known


def _quietly() -> None:
    """Operators that are called with anything print and warn a lot."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")


def _groups() -> list[Any]:
    from ..sources.modules import ModuleSource
    from ..sources.opinfo import OpInfoSource

    everything = [*OpInfoSource().groups(), *ModuleSource().groups()]
    compressed = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
    groups = [g for g in everything if g.dtype in RECORDED_DTYPES and not g.variant.endswith(compressed)]
    by_name: dict[tuple[str, str], Any] = {}
    for group in sorted(groups, key=lambda g: RECORDED_DTYPES.index(g.dtype)):
        by_name.setdefault((group.operator, group.variant), group)
    return list(by_name.values())


def _record_chunk(keys: Iterable[Any]) -> dict[str, list[Call]]:
    import torch

    from .recording import record

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return record(keys)


def _relevant(name: str, known: Mapping[str, Sequence[Call]]) -> dict[str, Sequence[Call]]:
    from .derivation import stem

    return {other: calls for other, calls in known.items() if stem(other) == stem(name)}


def _result(future: Any) -> Tried:
    try:
        found: Tried = future.result()
    except ProcessExpired as expired:
        return Tried([], [], 1, [f"kills the process: exit code {expired.exitcode}"])
    except TimeoutError:
        return Tried([], [], 1, [f"takes more than {SECONDS_PER_OVERLOAD:.0f} s"])
    except Exception as error:  # the overload cannot be called from Python at all
        return Tried([], [], 0, [f"{type(error).__name__}: {error}"])
    return found


def _try(name: str, known: Mapping[str, Sequence[Call]]) -> Tried:
    """In a worker: accepted calls of one overload, from its own recordings, its neighbours, or a search."""
    import torch

    from ..running.selection import DTYPES
    from .derivation import derived_calls
    from .recipes import signature
    from .search import search

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    accepted: dict[str, Call] = {}
    errors: list[str] = []
    tried = 0
    for call in (*known.get(name, ()), *derived_calls(name, known)):
        if len(accepted) >= WANTED:
            break
        tried += 1
        problem = _refused(name, call, None)
        if problem is None:
            accepted.setdefault(signature([call["args"], call["kwargs"]]), call)
        elif len(errors) < 3:
            errors.append(problem)
    if len(accepted) < WANTED:
        found = search(name, WANTED - len(accepted))
        tried += found.tried
        accepted.update({signature([c["args"], c["kwargs"]]): c for c in found.calls})
        errors.extend(message for message, _ in found.errors.most_common(3))
    calls = list(accepted.values())
    dtypes = [d for d in DTYPES if calls and _refused(name, calls[0], d) is None]
    return Tried(calls, dtypes, tried, errors if len(calls) < WANTED else [])


def _refused(name: str, call: Call, dtype: str | None) -> str | None:
    """The CPU's error for a call, or None when it accepts it."""
    from .calls import SchemaCall, arguments_of

    try:
        args, kwargs = arguments_of(call, dtype)
        SchemaCall(name)(*args, **kwargs)
    except Exception as error:
        return " ".join(str(error).split())[:160] or type(error).__name__
    return None
