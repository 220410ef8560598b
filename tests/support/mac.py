"""Commands of a Mac, in processes that take the simulated device for a real one. What they find is thrown away."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

POSING = Path(__file__).parent / "posing_as_a_mac"
TOOLS = {
    "sysctl": 'case "$2" in hw.memsize) echo 38654705664;; kern.hv_vmm_present) echo "${POSED_VIRTUAL:-0}";; '
    '*) echo "Apple M3 Pro";; esac',
    "sw_vers": 'case "$1" in -productVersion) echo 15.5;; *) echo 24F74;; esac',
    "system_profiler": """echo '{"SPDisplaysDataType": [{"sppci_cores": "18"}]}'""",
}


@dataclass(frozen=True)
class PosedMac:
    """A folder to work in, with the tools of a Mac on the PATH, its own registry, and mpsmith's commands."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> PosedMac:
        """Write the tools; the registry is empty."""
        for name, script in TOOLS.items():
            tool = folder / "tools" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text(f"#!/bin/sh\n{script}\n")
            tool.chmod(0o755)
        (folder / "registry").mkdir()
        return cls(folder)

    def run(self, *command: str, fails: bool = False, seconds: int = 580, **variables: str) -> str:
        """What `python -m COMMAND` prints; it must succeed unless it is to fail, and then stderr is included.

        `seconds`: of the processor, of each process: a busy machine makes no difference.
        `variables` are added to the environment, such as a fault (posing_as_a_mac/posed_faults.py).
        """
        inherited = [os.environ[name] for name in ("PYTHONPATH",) if name in os.environ]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(self.folder / "tools"), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(POSING), *inherited]),
            "MPSMITH_REGISTRY": str(self.folder / "registry"),
            "MPSMITH_METAL_MODE": "fast",
        }
        for name in ("MPSMITH_KERNELS", "PYTORCH_ENABLE_MPS_FALLBACK"):
            environment.pop(name, None)
        environment.update(variables)
        line = [sys.executable, "-m", *command]
        limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds))
        done = subprocess.run(
            line, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, preexec_fn=limited
        )
        assert (done.returncode != 0) == fails, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr if fails else done.stdout
