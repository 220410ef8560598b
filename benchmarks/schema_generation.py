"""CPU time of making schema-driven cases from the committed memory, as a share of a default audit.

A sample of the groups of every case source is made and executed in this process, by the functions that the workers of
an audit use. Left out of the audit's time are its store, its strict mode and the start of its processes, so the share
is rather overstated.
"""

import os
import resource
from collections import defaultdict

from tabulate import tabulate

# Every so many-th group of each source.
STRIDE = 40
SLOWEST_GROUP = 20.0  # seconds after which the rest of a group is left out, its making included in its share


def main() -> None:
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    import torch

    from mpsmith.audit.cases.sources import case_sources
    from mpsmith.audit.cases.sources.schema import SchemaSource
    from mpsmith.audit.judging.judge import judge
    from mpsmith.audit.model.case import described, in_order_of_execution, make_cases
    from mpsmith.audit.model.selection import Samples
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator.opening import DeviceKind, open_device

    torch.set_num_threads(1)
    device = open_device(DeviceKind.AUTO, coverage_profile)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # operators warn a lot, as those of a worker do into its log
    everything = case_sources(())
    sources = {name: source for name, source in everything.items() if not source.opt_in}
    making: defaultdict[str, float] = defaultdict(float)
    executing: defaultdict[str, float] = defaultdict(float)
    counts: defaultdict[str, int] = defaultdict(int)
    start = _cpu_seconds()
    planned = len(list(SchemaSource().groups()))
    planning = _cpu_seconds() - start
    for name, source in sources.items():
        for key in in_order_of_execution(source)[::STRIDE]:
            start = _cpu_seconds()
            try:
                cases = make_cases(source, key, Samples.DEFAULT, 0)
            except Exception:  # an entry without samples of a dtype
                continue
            made = _cpu_seconds()
            for position, case in cases.items():
                case.skipped = case.skipped or device.cannot_run(case.args)
                described(case)
                judge(case, device.recorder, 0, f"{key.label}:{position}")
                counts[name] += 1
                if _cpu_seconds() - made > SLOWEST_GROUP:
                    break
            making[name] += made - start
            executing[name] += _cpu_seconds() - made
    rows = [
        (
            name,
            counts[name],
            f"{making[name]:.2f}",
            f"{executing[name]:.2f}",
            f"{making[name] / counts[name] * 1e6:.0f}" if counts[name] else "",
        )
        for name in sources
    ]
    total = sum(making.values()) + sum(executing.values())
    # The memory is read once by every process; here it is charged as if the sample were a whole audit of one process.
    generation = making["schema"] + planning / STRIDE
    mark = "SIMULATED mps device" if device.simulated else "mps device of this machine"
    print(f"every {STRIDE}th group of each source, {mark}")
    print(tabulate(rows, headers=("source", "cases", "making, CPU s", "executing, CPU s", "making, µs a case")))
    print(f"reading the memory and listing its {planned:,} groups: {planning:.2f} CPU s, once in each process")
    print(f"making the schema-driven cases: {generation / total:.1%} of the CPU time of all")


def _cpu_seconds() -> float:
    """CPU seconds of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
