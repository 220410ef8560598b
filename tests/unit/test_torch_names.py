"""Every name of torch that a Mac's path uses is in every supported release: 2.7.1, where a Mac cannot be tried, too."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from mpsmith.audit.releases.data import load_facts
from mpsmith.audit.releases.wheel.fetch import open_release
from mpsmith.simulator.opening import OLDEST_TORCH
from support.torch_names import Uses, names_missing, names_used

ROOT = Path(__file__).parents[2]
FOLDERS = ("audit", "cli", "kernels", "registry", "reports", "scaffold", "tracing")
OUTSIDE_FOLDERS = ("simulator/opening.py", "simulator/fallback_recorders.py")

# Names that some release lacks, and why that breaks nothing there.
ABSENCE_IS_HANDLED = {
    "torch.AcceleratorError": "judge.py asks with hasattr",
    "torch.library.get_kernel": "registration.py asks with hasattr before it registers an override",
    "torch.hash_tensor": "inside functions that run only where the operator exists",
    "torch._C._RestorePythonTLSSnapshot": "a class of the C module that the stubs leave out; 2.7 and 2.13 have it",
}
# Its functions are called for the names that a release has.
PROBES = "audit/running/mps_module/"


def supported() -> list[str]:
    releases = [facts.release for facts in load_facts()]
    return [release for release in releases if tuple(map(int, release.split(".")[:2])) >= OLDEST_TORCH]


@cache
def used() -> Uses:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    paths += [*ROOT.glob("*.py"), *(ROOT / name for name in OUTSIDE_FOLDERS)]
    uses = names_used(paths, ROOT)
    return {name: rest for name, lines in uses.items() if (rest := [line for line in lines if PROBES not in line])}


@pytest.mark.network
@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", supported())
def test_a_release_has_every_name(release: str) -> None:
    archive = open_release(release)

    @cache
    def read(name: str) -> str | None:
        return archive.read(name).decode() if archive.has(name) else None

    missing = names_missing(used(), read)
    assert {name: lines for name, lines in missing.items() if name not in ABSENCE_IS_HANDLED} == {}


def test_the_names_are_read_from_imports_chains_and_patches(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import torch._inductor.config as inductor\nfrom torch.compiler import config\nimport torch\n"
        "with inductor.patch(force_disable_caches=True):\n    config.cache_key_tag = torch.backends.mps.is_built()\n"
        "def wanted(): return getattr(torch, 'later')\n"
    )
    assert set(names_used([module], tmp_path)) == {
        "torch._inductor.config",
        "torch._inductor.config.patch",
        "torch._inductor.config.force_disable_caches",
        "torch.compiler.config",
        "torch.compiler.config.cache_key_tag",
        "torch",
        "torch.backends.mps.is_built",
    }


def test_a_name_that_a_release_lacks_is_reported_with_its_lines() -> None:
    release = {
        "torch/__init__.py": "from torch.mps import empty",
        "torch/mps/__init__.py": "from .event import *",
        "torch/mps/event.py": "class Event: ...",
        "torch/_inductor/__init__.py": "",
        "torch/_inductor/config.py": "max_autotune = False",
    }
    names = ("torch.mps.Event.record", "torch.mps.later", "torch._inductor.config.max_autotune", "torch.ops.aten.abs")
    uses: Uses = {name: ["a.py:1"] for name in (*names, "torch._inductor.config.unsafe_marked")}
    assert names_missing(uses, release.get) == {
        "torch.mps.later": ["a.py:1"],
        "torch._inductor.config.unsafe_marked": ["a.py:1"],
    }
