"""What Perfetto's documentation asks of a trace in Chrome's event format, checked strictly.

Perfetto repairs or drops much without a message: here that is an error.
https://perfetto.dev/docs/getting-started/other-formats describes the format.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

NAMES = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}
Lane = tuple[int, int]


def strict_events(text: str) -> list[dict[str, Any]]:
    """The slices of a trace, by time; AssertionError where anything in it is not as documented."""
    trace = json.loads(text, parse_constant=_no_constant)
    assert set(trace) <= {"traceEvents", "otherData", "displayTimeUnit"}
    assert isinstance(trace.get("otherData", {}), dict)
    named: dict[str, set[Lane]] = defaultdict(set)
    slices: list[dict[str, Any]] = []
    for event in trace["traceEvents"]:
        assert event["ph"] in ("M", "X"), event
        lane = (event["pid"], event["tid"])
        assert all(type(number) is int and 0 <= number < 2**31 for number in lane), event
        if event["ph"] == "M":
            key = NAMES[event["name"]]
            assert set(event) == {"ph", "name", "pid", "tid", "args"}, event
            assert set(event["args"]) == {key}, event
            assert type(event["args"][key]) is (int if key == "sort_index" else str), event
            named[event["name"]].add(lane)
        else:
            assert set(event) == {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"}, event
            assert event["name"], event
            assert isinstance(event["cat"], str), event
            for number in (event["ts"], event["dur"]):
                assert isinstance(number, (int, float)), event
                assert math.isfinite(number), event
                assert number >= 0, event
            assert all(isinstance(value, (str, int)) for value in event["args"].values()), event
            slices.append(event)
    lanes = {(event["pid"], event["tid"]) for event in slices}
    assert lanes <= named["thread_name"], "a lane without a name"
    assert {process for process, _ in lanes} <= {process for process, _ in named["process_name"]}
    _nested(slices)
    return sorted(slices, key=_start)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def _start(event: dict[str, Any]) -> int:
    return round(event["ts"] * 1000)


def _nested(slices: list[dict[str, Any]]) -> None:
    """On one lane a slice lies wholly inside another one or wholly outside; Perfetto drops one that crosses an end."""
    lanes: dict[Lane, list[tuple[int, int]]] = defaultdict(list)
    for event in slices:
        lanes[event["pid"], event["tid"]].append((_start(event), _start(event) + round(event["dur"] * 1000)))
    for lane in lanes.values():
        open_ends: list[int] = []
        for start, end in sorted(lane, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            open_ends.append(end)
            assert all(outer >= inner for outer, inner in pairwise(open_ends)), "slices that cross"
