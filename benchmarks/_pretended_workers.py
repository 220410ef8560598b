"""Dask workers whose cases take a given time and have rows like those of real ones, without torch and sessions.

Given to a Dask worker with --preload. The variable MPSMITH_PRETENDED has how many groups there are, and the seconds
that a case takes in one thread.
"""

import os
import time

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.running.cluster import devices, messages, tasks
from mpsmith.audit.running.cluster.messages import (
    ExecuteBatch,
    Executed,
    Introduce,
    Introduction,
    MakePlan,
    Planned,
    WorkerProblem,
)
from mpsmith.audit.store.group_rows import GroupRows

VARIABLE = "MPSMITH_PRETENDED"
ENVIRONMENT = {"torch": "2.13.0", "simulated": True, "profile": "2.13.0"}
# As many cases as a group of the default audit has; of every tenth operator they fall back, and run in strict mode too.
CASES, FALLING_BACK = 5, 10


def group(number: int) -> GroupKey:
    return GroupKey("schema", f"operator{number // 8}", "", f"float{8 * (1 + number % 8)}", "fallback")


def rows_of(key: GroupKey) -> GroupRows:
    """What a group shows: texts as long as those of real cases."""
    falls_back = int(key.operator.removeprefix("operator")) % FALLING_BACK == 0
    verdict = ("missing" if key.mode == "strict" else "fallback") if falls_back else "passed"
    named = f'["aten::{key.operator}.out"]' if falls_back else "[]"
    cases = [
        (
            position,
            verdict,
            "forward",
            "",
            named,
            "values",
            0.125 * position,
            1,
            0.004 + position / 1e4,
            f"(float32[{position}, 4, 7] transposed, float32[{position}], dim=-1, keepdim=True, out=float32[0])",
            None,
        )
        for position in range(CASES)
    ]
    witnesses = [(f"aten::{key.operator}{end}", 1) for end in ("", ".out", ".Tensor", "_backward")]
    return GroupRows(key, {"cases": cases, "witnesses": witnesses, "covered": [(3, "eJyLjgUAARUAuQ==" * 8)]})


def answer(text: str) -> str:
    """In the place of a session."""
    groups, seconds = os.environ[VARIABLE].split()
    request = messages.message_in(text).request
    if isinstance(request, Introduce):
        return messages.as_text(Introduction(ENVIRONMENT, devices.code()))
    if isinstance(request, MakePlan):
        return messages.as_text(Planned(tuple(map(group, range(int(groups)))), ENVIRONMENT))
    if not isinstance(request, ExecuteBatch):
        return messages.as_text(WorkerProblem("there is no torch.mps here"))
    began = time.monotonic()
    rows = tuple(rows_of(work.key) for work in request.groups)
    said = messages.as_text(Executed(rows, len(rows) * CASES * float(seconds)))
    time.sleep(max(0.0, len(rows) * CASES * float(seconds) - (time.monotonic() - began)))
    return said


tasks._answer = answer
