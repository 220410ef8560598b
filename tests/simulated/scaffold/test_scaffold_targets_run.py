"""A kernel passes the tests that come with it, as each target that is compiled: `mpsmith check PATH --run`.

python -m pytest tests/simulated/scaffold/test_scaffold_targets_run.py -m network
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.network, pytest.mark.timeout(1200)]  # Metal's declarations are fetched: mpsmith check --setup

_CHECK = re.compile(r"  TORCH_CHECK_NOT_IMPLEMENTED\(\n\s+false, \"aten.*?\);\n", re.DOTALL)

# The bodies of functors.
FUNCTORS = {
    "softshrink": (
        "    const float x = float(self);\n    return T(x > lambd ? x - lambd : x < -lambd ? x + lambd : x * 0.0f);\n"
    ),
    "softshrink_backward": (
        "    const float x = float(self);\n    return x >= -lambd && x <= lambd ? T(0.0f) : grad_output;\n"
    ),
}
_UNWRITTEN = re.compile(r"    return T\(float\(\w+\)\);\n")
# The bodies of whole kernels: a thread a row, and a thread an element of the output.
BODIES = {
    "mode": """\
  device const T* row = self + long(thread_index) * row_length;
  long best = 0, most = 0;
  for (long i = 0; i < row_length; ++i) {
    long count = 0, last = i;
    for (long j = 0; j < row_length; ++j) {
      count += row[j] == row[i];
      last = row[j] == row[i] ? j : last;
    }
    if (count > most || (count == most && row[i] < row[best])) {
      most = count;
      best = last;
    }
  }
  values[thread_index] = row[best];
  indices[thread_index] = best;
""",
    "adaptive_max_pool3d": """\
  const long last = out_sizes[0];  // sizes follow how many there are
  long rest = long(thread_index), from[3], to[3];
  for (long d = 2; d >= 0; --d) {
    const long before = self_sizes[last - 2 + d], after = out_sizes[last - 2 + d], place = rest % after;
    from[d] = place * before / after;
    to[d] = ((place + 1) * before + after - 1) / after;
    rest /= after;
  }
  const long height = self_sizes[last - 1], width = self_sizes[last];
  device const T* plane = self + rest * self_sizes[last - 2] * height * width;
  long best = (from[0] * height + from[1]) * width + from[2];
  for (long z = from[0]; z < to[0]; ++z) {
    for (long y = from[1]; y < to[1]; ++y) {
      for (long x = from[2]; x < to[2]; ++x) {
        const long at = (z * height + y) * width + x;
        best = plane[at] > plane[best] || isnan(float(plane[at])) ? at : best;
      }
    }
  }
  out[thread_index] = plane[best];
  indices[thread_index] = best;
""",
}
_REGION = re.compile(r"(?<=\n)(?P<begin>  // mpsmith: begin \w+\n).*?(?P<end>  // mpsmith: end \w+\n)", re.DOTALL)


def mpsmith(*arguments: str, registry: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPSMITH_REGISTRY": str(registry), "MPSMITH_KERNELS": "off"}
    script = "from mpsmith.cli import main; main()"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1000, check=False)


def scaffolded(tmp_path: Path, operator: str, target: str) -> Path:
    (tmp_path / "registry").mkdir()
    out = tmp_path / f"{operator}_{target}"
    done = mpsmith(
        "scaffold", operator, "--force", "--target", target, "--out", str(out), registry=tmp_path / "registry"
    )
    assert done.returncode == 0, done.stderr
    return out


def write_kernel(out: Path, host: str, metal: str, operator: str) -> None:
    """Fill in every kernel of an operator, and take away the checks that say that it is not written."""
    text, checks = _CHECK.subn("", (out / host).read_text())
    (out / host).write_text(text)
    text = (out / metal).read_text()
    if operator in FUNCTORS:
        text, written = _UNWRITTEN.subn(FUNCTORS[operator], text)
    else:
        text, written = _REGION.subn(lambda region: region["begin"] + BODIES[operator] + region["end"], text)
    assert checks == written > 0, (checks, written)
    (out / metal).write_text(text)


def assert_passes(out: Path) -> None:
    done = mpsmith("check", str(out), "--run", registry=out.parent / "registry")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"tests?: \d+ passed\. Run on mpsmith's simulated device", done.stdout), done.stdout


@pytest.mark.parametrize("operator", [*FUNCTORS, "mode", "adaptive_max_pool3d"])
def test_a_written_kernel_passes_its_tests(tmp_path: Path, operator: str) -> None:
    out = scaffolded(tmp_path, operator, "extension")
    write_kernel(out, f"src/{operator.strip('_')}.mm", f"src/{operator.strip('_')}_metal.h", operator)
    assert_passes(out)


# Operators whose overloads have no row for MPS.
@pytest.mark.parametrize("operator", ["mode", "adaptive_max_pool3d"])
def test_a_written_patch_passes_its_test(tmp_path: Path, operator: str) -> None:
    out = scaffolded(tmp_path, operator, "upstream")
    camel = "".join(word.capitalize() for word in operator.strip("_").split("_"))
    folder = "tree/aten/src/ATen/native/mps"
    write_kernel(out, f"{folder}/operations/{camel}.mm", f"{folder}/kernels/{camel}.metal", operator)
    assert_passes(out)
