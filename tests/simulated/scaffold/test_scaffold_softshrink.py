"""The worked example of docs/softshrink.md, step by step: a fallback is found, scaffolded, written, checked and gone.

It runs under the coverage of torch 2.0.1, where softshrink had no kernel for mps, in a separate process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "softshrink.md"

SETTING = """
import json, sys, warnings
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading as device
device.load(coverage_profile("2.0.1"))
device.set_fallback_enabled(True)
warnings.simplefilter("ignore")
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.Softshrink(), nn.Linear(64, 64), nn.Softshrink())
inputs = torch.randn(16, 64)
expected = model(inputs)
model, inputs = model.to("mps"), inputs.to("mps")

def fallbacks():
    device.reset_counters()
    result = model(inputs)
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-6)
    return {name: calls.fallback for name, calls in device.counters().items() if calls.fallback}
"""


# Those that show the kernel itself, in one dtype: the whole file takes a minute.
CHECKS = "float32 and (values or layouts or twice)"


def python(script: str, *arguments: str, registry: Path) -> str:
    """What a script prints in a fresh interpreter. Fails when it fails."""
    environment = os.environ | {"MPSMITH_REGISTRY": str(registry), "MPSMITH_KERNELS": "off"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def mpsmith(*arguments: str, registry: Path) -> str:
    return python("from mpsmith.cli import main; import sys; main()", *arguments, registry=registry)


def blocks(language: str) -> list[str]:
    """The code blocks of the document in a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)


def written(path: Path, region: str, content: str) -> None:
    """Write a region by hand, as the document says."""
    from mpsmith.scaffold.targets.regions import with_regions

    text, lost = with_regions(path.read_text(), {region: content}, str(path))
    assert not lost
    path.write_text(text)


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    folder = tmp_path / "registry"
    folder.mkdir()
    return folder


def test_the_fallback_is_there_and_then_it_is_gone(tmp_path: Path, registry: Path) -> None:
    out = tmp_path / "softshrink"

    # Audited: two calls of softshrink leave the device.
    before = python(SETTING + "print(fallbacks())", registry=registry)
    assert before.strip() == "{'aten::softshrink.out': 2}"

    # Scaffolded. It is native in the installed torch, hence --force.
    said = mpsmith("scaffold", "softshrink", "--force", "--out", str(out), registry=registry)
    assert "elementwise, one tensor" in said
    run_kernel = SETTING + (
        "from pathlib import Path\n"
        "from mpsmith.kernels.verification.device_under_test import registered\n"
        "with registered(Path(sys.argv[1])):\n"
        "    print(fallbacks())\n"
    )
    module = out / "kernels" / "softshrink" / "softshrink.py"
    unwritten = subprocess.run(
        [sys.executable, "-c", run_kernel, str(module)], capture_output=True, text=True, timeout=300, check=False
    )
    assert "aten::softshrink.out: the kernel is not written yet" in unwritten.stderr

    # Written, with the code of the document.
    (metal,) = blocks("metal")
    host = blocks("python")[0]
    written(out / "kernels" / "softshrink" / "softshrink.metal", "softshrink_out", metal)
    written(module, "softshrink_out", host)

    # Checked.
    assert "softshrink.metal: ok (metal)" in mpsmith("check", str(out), registry=registry)

    # Imported: nothing of softshrink runs on the CPU any more, and the result is the same.
    after = python(run_kernel, str(module), registry=registry)
    assert after.strip() == "{}"

    # Scaffolded again after an upgrade: what was written stays.
    mpsmith("scaffold", "softshrink", "--force", "--out", str(out), registry=registry)
    assert metal in (out / "kernels" / "softshrink" / "softshrink.metal").read_text()
    assert host in module.read_text()


def test_the_generated_tests_accept_the_written_kernel(tmp_path: Path, registry: Path) -> None:
    pytest.importorskip("hypothesis")
    out = tmp_path / "softshrink"
    mpsmith("scaffold", "softshrink", "--force", "--out", str(out), registry=registry)
    written(out / "kernels" / "softshrink" / "softshrink.metal", "softshrink_out", blocks("metal")[0])
    written(out / "kernels" / "softshrink" / "softshrink.py", "softshrink_out", blocks("python")[0])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHECKS, str(out / "tests")],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=out,
    )
    assert done.returncode == 0, done.stdout[-4000:]
