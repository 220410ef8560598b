"""Finished families with host code in C++ beside the same in Python: what one call costs, and how the two compare.

Processor time on small inputs, where the host code is most of a call. The kernels are the same and run on the CPU here,
so that the difference is the host code's. It says nothing about an Apple GPU. Needs `mpsmith check --setup`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ._processor_time import microseconds

# One of each kind: elementwise, with two outputs, a reduction, pooling, a backward.
FAMILIES = ("heaviside", "frexp", "mode", "adaptive_avg_pool3d", "multi_margin_loss")
_ELEMENTS = 64


def main() -> None:
    """Print the cost of a call of each family in both, and the ratio."""
    os.environ["MPSMITH_KERNELS"] = "off"
    from mpsmith.audit.judging.transfer import move
    from mpsmith.audit.surface.profiles import profile
    from mpsmith.kernels.runtime import catalog
    from mpsmith.kernels.runtime.registration import use
    from mpsmith.scaffold.building.simulated import build
    from mpsmith.scaffold.building.subject import subject_at
    from mpsmith.scaffold.generation.from_kernel import prepare_extension
    from mpsmith.scaffold.generation.writing import write
    from mpsmith.scaffold.operators.source import source_of
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading
    from mpsmith.simulator.objc.errors import ExtensionError
    from mpsmith.simulator.objc.host_libraries import torch_host_library
    from mpsmith.simulator.objc.loading import load_extension

    try:
        torch_host_library()
    except ExtensionError as error:
        print(f"skipped: {error}")
        return
    loading.load(profile(None))
    metal.install()
    with tempfile.TemporaryDirectory() as temporary:
        for family in FAMILIES:
            workload = catalog.part_of(family, "workload").WORKLOAD  # type: ignore[union-attr]
            inputs, _ = move(workload.arguments(_ELEMENTS), {}, "mps")

            def call(workload: object = workload, inputs: tuple[object, ...] = inputs) -> None:
                workload.call(*inputs)  # type: ignore[attr-defined]

            with use(*(kernel.overload for kernel in catalog.family(family) if kernel.applies is None)):
                in_python = microseconds(call, calls=200)
            folder = Path(temporary) / family
            write(prepare_extension(source_of(None), family, out=folder).plan)
            load_extension(build(subject_at(folder))[0].library)
            in_cxx = microseconds(call, calls=200)
            print(
                f"{family:22} in Python {in_python:7.1f} us  in C++ {in_cxx:7.1f} us  {in_cxx / in_python:4.2f} times"
            )


if __name__ == "__main__":
    main()
