"""A wheel whose operators take fewer arguments than the installed torch's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

PROGRAM = """
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading
from mpsmith.simulator.macho.device_kernels import WheelKernels
from mpsmith.simulator.macho.process import Computed, OperatorError
from mpsmith.simulator.macho.shared_memory import DTYPES

class Older:
    ended = False
    def compute(self, overload, *arguments, state=None):
        if len(arguments) != 1:
            raise OperatorError(f"{overload} takes 1 arguments, not {len(arguments)}", "RuntimeError")
        values = torch.full((2,), 7)
        place = 1, values.data_ptr(), 16, DTYPES.index("int64"), 0, [2], [1]
        self.kept = values
        return Computed([place], [], "", {})

loading.load(coverage_profile(None))
kernels = WheelKernels(Older, ["argmax"])
kernels.install()
x = torch.tensor([3.0, 5.0], device="mps")
assert x.argmax(0).item() == 1 and kernels.stood_in.total() == 1  # `dim` is one that the release does not know
assert x.argmax().tolist() == [7, 7] and kernels.stood_in.total() == 1  # the others are its defaults
print("done")
"""


def test_defaults_that_an_older_schema_lacks_are_not_sent(
    fresh_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = fresh_python(PROGRAM)
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
