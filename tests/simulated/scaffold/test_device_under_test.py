"""The device for generated tests: nothing answers in place of the kernel under test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

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


TAKE = """
import torch

take = lambda self, index: self.cpu().take(index.cpu()).to("mps")
KERNELS = (("aten::take", take), ("aten::take.out", lambda self, index, *, out: out.copy_(take(self, index))))
"""
CHECKED = """
import warnings
from pathlib import Path
from mpsmith.kernels.verification.conformance import Subject
from mpsmith.kernels.verification.device_under_test import device_without, registered

device_without("take", "take.out")
with registered(Path(KERNEL)), warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    Subject("aten::take", ("take", "take.out"), opinfos=("take",)).check_samples("float32")
print({str(warning.message) for warning in raised})
"""


def test_values_are_compared_where_a_gradient_needs_another_missing_operator(
    fresh_python: FreshPython, tmp_path: Path
) -> None:
    kernel = tmp_path / "take.py"
    warning = "aten::take: no gradients were compared: aten::put_ has no kernel on mps"
    for text, expected in ((TAKE, warning), (TAKE.replace(".to(", ".neg().to("), "wrong")):
        kernel.write_text(text)
        done = fresh_python(f"KERNEL = {str(kernel)!r}" + CHECKED, check=False)
        assert expected in done.stdout + done.stderr
