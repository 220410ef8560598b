"""The device for generated tests: nothing answers in place of the kernel under test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

FreshPython = Callable[..., "subprocess.CompletedProcess[str]"]

SOFTSHRINK = """
from mpsmith.kernels.verification.device_under_test import device_without

device_without("softshrink", "softshrink.out")
device_without()  # loaded already: it stays as it is
import torch

print(torch.relu(-torch.ones(2, device="mps")).tolist())
torch.nn.functional.softshrink(torch.ones(2, device="mps"))
"""


def test_the_functional_form_does_not_answer_for_the_kernel_under_test(fresh_python: FreshPython) -> None:
    done = fresh_python(SOFTSHRINK, check=False)
    assert done.stdout == "[0.0, 0.0]\n"
    assert "NotImplementedError: The operator 'aten::softshrink.out' is not currently implemented" in done.stderr
