"""Finished families with host code in C++ beside the same in Python: what one call costs, and how the two compare.

Processor time on small inputs, where the host code is most of a call. The kernels are the same and run on the CPU here,
so that the difference is the host code's. It says nothing about an Apple GPU. Needs `mpsmith check --setup`, and builds
an extension for each family: some minutes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ._processor_time import microseconds

_ELEMENTS = 64


def main() -> None:
    """Print the cost of a call of each finished family in both, and the ratio."""
    os.environ["MPSMITH_KERNELS"] = "off"
    from mpsmith.audit.judging.transfer import move
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.errors import MpsmithError
    from mpsmith.kernels.runtime import catalog
    from mpsmith.kernels.runtime.registration import use
    from mpsmith.kernels.verification.timing import workload_of
    from mpsmith.kernels.verification.workload import Workload
    from mpsmith.scaffold.building.simulated import build
    from mpsmith.scaffold.building.subject import subject_at
    from mpsmith.scaffold.family_survey import finished_families
    from mpsmith.scaffold.generation.from_kernel import prepare_extension
    from mpsmith.scaffold.generation.writing import write
    from mpsmith.scaffold.operators.source import source_of
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading
    from mpsmith.simulator.objc.bridge import launches
    from mpsmith.simulator.objc.errors import ExtensionError
    from mpsmith.simulator.objc.host_libraries import torch_host_library
    from mpsmith.simulator.objc.loading import load_extension

    try:
        torch_host_library()
    except ExtensionError as error:
        print(f"skipped: {error}")
        return
    loading.load(coverage_profile(None))
    metal.install()
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        for family in finished_families():
            folder = Path(temporary) / family
            try:
                write(prepare_extension(source_of(None), family, out=folder).plan)
            except MpsmithError as error:
                print(f"{family:22} {error}")
                continue
            workload = workload_of(family)
            inputs, _ = move(workload.arguments(_ELEMENTS), {}, "mps")

            def call(workload: Workload = workload, inputs: tuple[object, ...] = inputs) -> None:
                workload.call(*inputs)

            with use(*(kernel.overload for kernel in catalog.family(family) if kernel.applies is None)):
                in_python = microseconds(call, calls=100)
            load_extension(build(subject_at(folder))[0].library)
            before = launches()
            call()
            if launches() == before:
                print(f"{family:22} in Python {in_python:7.1f} us, and its C++ launched nothing", flush=True)
                continue
            in_cxx = microseconds(call, calls=100)
            ratios.append(in_cxx / in_python)
            print(
                f"{family:22} in Python {in_python:7.1f} us  in C++ {in_cxx:7.1f} us  {ratios[-1]:4.2f} times",
                flush=True,
            )
    ratios.sort()
    if ratios:
        middle = ratios[len(ratios) // 2]
        print(f"{len(ratios)} families: {ratios[0]:.2f} to {ratios[-1]:.2f} times, {middle:.2f} in the middle")


if __name__ == "__main__":
    main()
