"""`mpsmith compare` of two runs of 300,000 cases: the first time, when verdicts are summed up, and the next.

The stores are made here: 6,000 groups of 50 cases, of which one in thirty does not pass; a hundredth differ.
Processor time, which other programs disturb less than the time on the clock, the least of three; the goal is 5 s for
what `compare` does once the verdicts of a run are known.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

GROUPS, CASES, REPEATS = 6_000, 50, 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPSMITH_CACHE"] = str(Path(folder) / "cache")
        paths = [store_of(Path(folder) / f"{which}.sqlite", which) for which in range(2)]
        first = seconds(lambda: compared(paths))
        later = min(seconds(lambda: compared(paths)) for _ in range(REPEATS))
    print(f"  {2 * GROUPS * CASES:,} cases of two runs; summed up and compared: {first:.1f} s")
    print(f"  compared again: {later:.1f} s (at most 5)")


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def compared(paths: list[Path]) -> None:
    from mpsmith.audit.store.comparison import compare_runs
    from mpsmith.audit.store.store import Store
    from mpsmith.reports.evidence.comparing import differences, side_of_run

    with Store.open(paths[0]) as first, Store.open(paths[1]) as second:
        runs = [(store, store.latest_run()) for store in (first, second)]
        found = differences(*(side_of_run(*one) for one in runs))
        cases = compare_runs(*runs)
    assert found.verdicts
    assert len(cases.differences) == GROUPS * CASES // 100


def store_of(path: Path, which: int) -> Path:
    from mpsmith.audit.model.group import GroupKey
    from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
    from mpsmith.audit.releases.surface import installed_surface
    from mpsmith.audit.store.store import Store

    names = [each.name.removeprefix("aten::") for each in installed_surface().overloads]
    passed, wrong = Outcome(CaseVerdict.PASSED), Outcome(CaseVerdict.WRONG, message="3 of 12 elements differ")
    dtypes = ("float32", "float16", "int64")
    with Store.create(path) as store:
        environment = {"torch": "2.13.0", "simulated": True, "profile": "2.13.0"}
        run = store.begin_run({"samples": "default"}, environment)
        keys = [GroupKey("schema", names[n // 3], "", dtypes[n % 3], "fallback") for n in range(GROUPS)]
        store.plan(run.id, keys)
        rows = []
        for group in store.groups(run.id):
            for position in range(CASES):
                number = group.id * CASES + position
                changed = which == 1 and number % 100 == 7
                outcome = wrong if changed or (number % 20 == 3 and group.id % 3) else passed
                rows.append((group.id, position, outcome, "(float32[3, 4], float32[4])"))
            store.add_called_overloads(group.id, {f"aten::{group.key.operator}": True})
        store.add_cases(rows)
        store.finish_run(run.id)
    return path


if __name__ == "__main__":
    main()
